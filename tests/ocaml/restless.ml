(* SPDX-License-Identifier: MIT *)
(* Pauses and resumes its events as fast as it can, until stdin has a line or is closed. *)

let () =
  Runtime_events.start ();
  Gate.say "ready";
  let rec go_on () =
    for _ = 1 to 100 do
      Runtime_events.pause ();
      Runtime_events.resume ()
    done;
    match Unix.select [ Unix.stdin ] [] [] 0. with
    | [], _, _ -> go_on ()
    | _ -> Gate.say "done"
  in
  go_on ()
