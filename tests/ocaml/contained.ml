(* SPDX-License-Identifier: MIT *)
(* contained [N]: two domains write N user events each, and collect garbage; then events are paused for a moment.
   Uses nothing that a container may lack: linked statically, without /proc. *)

open Runtime_events

let () =
  let count = Gate.int_argument 1 100 in
  let work () =
    for i = 1 to count do
      User.write Vocabulary.number i;
      if i mod 10 = 0 then Gate.churn 1
    done
  in
  Gate.stop_at "ready";
  let joined = Atomic.make false and worked = Atomic.make false in
  let other =
    Domain.spawn (fun () ->
        work ();
        Atomic.set worked true;
        (* Sleeps and runs until the test has seen the threads. *)
        while not (Atomic.get joined) do Domain.cpu_relax () done)
  in
  work ();
  while not (Atomic.get worked) do Domain.cpu_relax () done;
  Gate.stop_at "both";
  Atomic.set joined true;
  Domain.join other;
  pause ();
  resume ();
  Gate.say "wrote %d" (2 * count);
  Gate.stop_at "done"
