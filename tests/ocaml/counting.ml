(* SPDX-License-Identifier: MIT *)
(* A user event that counts: what a program linked with this wrote is known from the numbers. *)

open Runtime_events

type User.tag += Step

let step = User.register "step" Step Type.int

(* Writes the numbers from [first] on. *)
let write ?(first = 1) count =
  for number = first to first + count - 1 do
    User.write step number
  done
