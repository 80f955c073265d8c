(* SPDX-License-Identifier: MIT *)
(* chdir_relative DIR: leaves for DIR, so that the relative path of the ring leads nowhere any more. *)

let () =
  Sys.chdir Sys.argv.(1);
  Gate.stop_at "ready";
  Gate.churn 2;
  Gate.stop_at "done"
