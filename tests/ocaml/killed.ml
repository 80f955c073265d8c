(* SPDX-License-Identifier: MIT *)
(* Collects garbage until it is killed. *)

let () =
  Gate.stop_at "ready";
  Gate.churn 2;
  Gate.say "busy";
  while true do
    Gate.churn 1;
    Unix.sleepf 0.001
  done
