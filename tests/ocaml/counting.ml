(* SPDX-License-Identifier: MIT *)
(* Numbered user events: the numbers show whether all events of a program were delivered. *)

open Runtime_events

type User.tag += Step

let step = User.register "step" Step Type.int

(* Writes the numbers from [first] on. *)
let write ?(first = 1) count =
  for number = first to first + count - 1 do
    User.write step number
  done
