(* SPDX-License-Identifier: MIT *)
(* Linked with the instrumented runtime, the only one that counts allocations by size. *)

let () =
  Gate.stop_at "ready";
  Gate.churn 3;
  for size = 1 to 120 do
    ignore (Sys.opaque_identity (Array.make (size * 10) 0))
  done;
  Gc.full_major ();
  Gate.stop_at "done"
