(* SPDX-License-Identifier: MIT *)
(* ends HOW: writes a hundred steps, collects garbage, and ends: "exit:CODE", "_exit:CODE", "uncaught",
   "signal:NUMBER" (sent to itself), or "wait" for the test to end it. *)

let () =
  Counting.write 100;
  Gate.churn 1;
  match String.split_on_char ':' Sys.argv.(1) with
  | [ "exit"; code ] -> exit (int_of_string code)
  | [ "_exit"; code ] -> Unix._exit (int_of_string code)
  | [ "uncaught" ] -> failwith "on purpose"
  | [ "signal"; number ] ->
    let number = int_of_string number in
    (* The runtime handles SIGSEGV itself. The action of SIGKILL cannot be set. *)
    (try Sys.set_signal number Sys.Signal_default with Sys_error _ -> ());
    Unix.kill (Unix.getpid ()) number;
    Gate.stop_at "survived"
  | _ -> Gate.stop_at "ready"
