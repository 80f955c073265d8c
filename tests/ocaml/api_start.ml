(* SPDX-License-Identifier: MIT *)
(* Switches its own events on, pauses and resumes them: a gate at each step. *)

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
