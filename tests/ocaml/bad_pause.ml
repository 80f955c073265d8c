(* SPDX-License-Identifier: MIT *)
(* bad_pause SECONDS: after a gate a full collection in which a finaliser sleeps so long. *)

let () =
  let seconds = float_of_string Sys.argv.(1) in
  Gate.stop_at "ready";
  Gc.finalise (fun _ -> Unix.sleepf seconds) (Sys.opaque_identity (ref 0));
  Gc.full_major ();
  Gate.stop_at "done"
