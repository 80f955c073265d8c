(* SPDX-License-Identifier: MIT *)
(* numbered [N [GATED]]: writes user events with the numbers 0 to N-1 and ends, after a few milliseconds. With GATED
   it waits at a gate first. *)

open Runtime_events

type User.tag += Number

let number = User.register "number" Number Type.int

let () =
  if Array.length Sys.argv > 2 then Gate.stop_at "ready";
  for n = 0 to Gate.int_argument 1 0 - 1 do
    User.write number n
  done
