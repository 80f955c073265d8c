(* SPDX-License-Identifier: MIT *)
(* bursts [N]: for each line on stdin N user events, as fast as it can, then "done". *)

open Runtime_events

type User.tag += Work | Item

let work = User.register "work" Work Type.span
let item = User.register "item" Item Type.int
let events = Gate.int_argument 1 20_000

let () =
  Gate.say "ready";
  try
    while true do
      ignore (input_line stdin);
      for number = 1 to events / 4 do
        User.write work Type.Begin;
        User.write item number;
        User.write item (-number);
        User.write work Type.End
      done;
      Gate.say "done"
    done
  with End_of_file -> ()
