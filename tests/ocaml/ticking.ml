(* SPDX-License-Identifier: MIT *)
(* ticking: writes a user event "tick" each half millisecond, and allocates, until a line comes on stdin. Prints
   "wrote EVENTS" then. *)

open Runtime_events

type User.tag += Tick

let tick = User.register "tick" Tick Type.unit

let is_asked () = match Unix.select [ Unix.stdin ] [] [] 0.0005 with [], _, _ -> false | _ -> true

let rec write count =
  User.write tick ();
  if count mod 10 = 0 then Gate.churn 1;
  if is_asked () then count + 1 else write (count + 1)

let () =
  Gate.say "ready";
  Gate.say "wrote %d" (write 0);
  Gate.wait ();
  Gate.stop_at "counted"
