(* SPDX-License-Identifier: MIT *)
(* exec_chain PROGRAM [ARG...]: collects garbage and execs PROGRAM. *)

let () =
  Gate.stop_at "ready";
  Gate.churn 2;
  let arguments = Array.sub Sys.argv 1 (Array.length Sys.argv - 1) in
  Unix.execv arguments.(0) arguments
