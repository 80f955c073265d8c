(* SPDX-License-Identifier: MIT *)
(* steady RATE MILLISECONDS: writes RATE user events a second, evenly, for that time. Every ten milliseconds one of them
   is a "beacon", which has a number, from 1 on. The last is written at the end, and its number is negated. Prints
   "done BEACONS EVENTS". *)

open Runtime_events

type User.tag += Step | Beacon

let step = User.register "step" Step Type.int
let beacon = User.register "beacon" Beacon Type.int
let rate = Gate.int_argument 1 300_000
let duration = float (Gate.int_argument 2 2_000) /. 1e3

(* If this program had no cpu for a while, it does not make up for it: a burst would fill the ring. *)
let most_at_once = 3_000

let () =
  Gate.stop_at "ready";
  let start = Unix.gettimeofday () in
  let rec write time beacons events due =
    let passed = Unix.gettimeofday () -. start in
    let elapsed = Float.to_int (passed *. float rate) in
    let count = min most_at_once (elapsed - due) in
    for number = events + 1 to events + count do User.write step number done;
    let is_last = passed >= duration in
    let beacons =
      if is_last || passed -. time >= 0.01 then begin
        User.write beacon (if is_last then -beacons - 1 else beacons + 1);
        beacons + 1
      end
      else beacons
    in
    let time = if passed -. time >= 0.01 then passed else time in
    if is_last then Gate.say "done %d %d" beacons (events + count)
    else begin
      Unix.sleepf 0.0005;
      write time beacons (events + count) elapsed
    end
  in
  write 0. 0 0 0;
  Gate.wait ()
