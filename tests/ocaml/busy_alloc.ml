(* SPDX-License-Identifier: MIT *)
(* busy_alloc [N]: about N minor collections, and a full major one. *)

let () =
  Gate.stop_at "ready";
  Gate.churn (Gate.int_argument 1 20);
  Gc.full_major ();
  Gate.stop_at "done"
