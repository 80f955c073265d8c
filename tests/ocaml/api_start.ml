(* SPDX-License-Identifier: MIT *)
(* Starts, pauses and resumes its own events, with a gate before each step. *)

let () =
  Gate.stop_at "ready";
  Runtime_events.start ();
  Gate.churn 3;
  Gate.stop_at "started";
  Runtime_events.pause ();
  Gate.churn 3;
  Gate.stop_at "paused";
  Runtime_events.resume ();
  Gate.churn 3;
  Gate.stop_at "resumed"
