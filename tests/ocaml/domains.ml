(* SPDX-License-Identifier: MIT *)
(* domains [K [N]]: K domains at once, each with about N minor heaps of garbage; then as many again, in their places. *)

let () =
  let count = Gate.int_argument 1 3 and rounds = Gate.int_argument 2 3 in
  Gate.stop_at "ready";
  for _ = 1 to 2 do
    List.iter Domain.join (List.init count (fun _ -> Domain.spawn (fun () -> Gate.churn rounds)))
  done;
  Gate.stop_at "done"
