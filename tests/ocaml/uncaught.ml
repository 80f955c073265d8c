(* SPDX-License-Identifier: MIT *)
(* Ends by an exception nobody catches: OCaml 5 then leaves the ring as it is. *)

let () =
  Gate.stop_at "ready";
  Gate.churn 2;
  Gc.full_major ();
  failwith "on purpose"
