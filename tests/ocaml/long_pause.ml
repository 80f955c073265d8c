(* SPDX-License-Identifier: MIT *)
(* long_pause SECONDS: at each gate a pause of at least so long, in a user span "request", between other work. The pause
   is a full collection: it runs a finaliser, which sleeps. *)

open Runtime_events

type User.tag += Kind

let request = User.register "request" Kind Type.span

let pause seconds =
  Gc.finalise (fun _ -> Unix.sleepf seconds) (ref 0);
  Gc.full_major ()

let () =
  let seconds = float_of_string Sys.argv.(1) in
  Gate.stop_at "ready";
  while true do
    Gate.churn 2;
    User.write request Type.Begin;
    pause seconds;
    User.write request Type.End;
    Gate.churn 2;
    Gate.stop_at "paused"
  done
