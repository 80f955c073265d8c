(* SPDX-License-Identifier: MIT *)
(* An event loop that waits in select, so many times, and now and then stalls: it computes for 200 ms of CPU time, or
   reads from a pipe into which nobody writes for 200 ms. *)

type Runtime_events.User.tag += Rebuild

let rebuild = Runtime_events.(User.register "rebuild" Rebuild Type.span)

let compute () =
  Runtime_events.User.write rebuild Begin;
  let start = Sys.time () in
  let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2) in
  while Sys.time () -. start < 0.2 do ignore (Sys.opaque_identity (fib 20)) done;
  Runtime_events.User.write rebuild End

let read () =
  let pipe = Unix.open_process_in "sleep 0.2; echo" in
  ignore (input_line pipe);
  ignore (Unix.close_process_in pipe)

let () =
  for turn = 1 to Gate.int_argument 1 100 do
    ignore (Unix.select [] [] [] 0.002);
    if turn mod 40 = 20 then compute ();
    if turn mod 40 = 0 then read ()
  done
