(* SPDX-License-Identifier: MIT *)
(* Forks as OCaml does; parent and child collect garbage. The child's status is 5. *)

let () =
  Gate.stop_at "ready";
  Gate.churn 2;
  match Unix.fork () with
  | 0 ->
    Gate.churn 2;
    Gc.full_major ();
    exit 5
  | child ->
    Gate.churn 2;
    (match Unix.waitpid [] child with
     | _, WEXITED 5 -> Gate.say "child %d" child
     | _ -> failwith "the child ended wrongly");
    Gate.stop_at "done"
