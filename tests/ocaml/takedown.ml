(* SPDX-License-Identifier: MIT *)
(* takedown STEPS: writes steps, and takes its ring down while it goes on. *)

external destroy : unit -> unit = "caml_runtime_events_destroy"

let () =
  Counting.write (Gate.int_argument 1 100);
  destroy ();
  Gate.churn 2;
  Gate.stop_at "done"
