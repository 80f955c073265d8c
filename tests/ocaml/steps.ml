(* SPDX-License-Identifier: MIT *)
(* steps COUNT [TIMES]: at each of TIMES gates writes COUNT steps. No garbage, no collection. *)

let () =
  let count = Gate.int_argument 1 10 in
  for time = 0 to Gate.int_argument 2 1 - 1 do
    Gate.stop_at "ready";
    Counting.write ~first:(1 + (time * count)) count
  done;
  Gate.stop_at "done"
