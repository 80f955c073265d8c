(* SPDX-License-Identifier: MIT *)
(* steps COUNT [TIMES]: writes COUNT steps, as often as it may go on, and nothing else: no garbage, no collection. *)

let () =
  let count = Gate.int_argument 1 10 in
  for time = 0 to Gate.int_argument 2 1 - 1 do
    Gate.stop_at "ready";
    Counting.write ~first:(1 + (time * count)) count
  done;
  Gate.stop_at "done"
