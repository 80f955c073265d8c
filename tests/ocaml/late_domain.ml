(* SPDX-License-Identifier: MIT *)
(* late_domain MS: at each gate domain 1 sleeps for MS ms in C code that keeps the runtime, and domain 0 begins a minor
   collection: it waits for domain 1, in a pause of about MS ms. *)

external sleep : int -> unit = "late_domain_sleep"

let () =
  let ms = int_of_string Sys.argv.(1) in
  let receive, send = Unix.pipe () in
  let is_called = Atomic.make false in
  let late () =
    while Unix.read receive (Bytes.create 1) 0 1 = 1 do
      (* No safepoint from here to the end of the sleep. *)
      Atomic.set is_called true;
      sleep ms;
      Atomic.set is_called false
    done
  in
  ignore (Domain.spawn late);
  Gate.stop_at "ready";
  while true do
    ignore (Unix.write_substring send "x" 0 1);
    while not (Atomic.get is_called) do Domain.cpu_relax () done;
    Gate.churn 2;
    Gate.stop_at "paused"
  done
