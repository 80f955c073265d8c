(* SPDX-License-Identifier: MIT *)
(* chdir_relative DIR: changes to DIR, so that the relative path of its ring is no longer valid. *)

let () =
  Sys.chdir Sys.argv.(1);
  Gate.stop_at "ready";
  Gate.churn 2;
  Gate.stop_at "done"
