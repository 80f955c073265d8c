(* SPDX-License-Identifier: MIT *)
(* Sleeps so many milliseconds, works for some microseconds, and so on, until it is killed. *)

let () =
  let seconds = float_of_int (Gate.int_argument 1 300) /. 1000. in
  Gate.stop_at "ready";
  while true do
    Unix.sleepf seconds;
    ignore (Sys.opaque_identity (List.init 100 Fun.id))
  done
