(* SPDX-License-Identifier: MIT *)
(* Ends by an uncaught exception: OCaml 5 then leaves the ring file behind. *)

let () =
  Gate.stop_at "ready";
  Gate.churn 2;
  Gc.full_major ();
  failwith "on purpose"
