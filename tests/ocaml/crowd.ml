(* SPDX-License-Identifier: MIT *)
(* crowd COUNT [TIMES]: TIMES times, runs COUNT domains at once besides the main one. Each writes a step. *)

let mutex = Mutex.create ()
let changed = Condition.create ()

(* Returns when [count] domains have called it. *)
let meet present count =
  Mutex.protect mutex (fun () ->
    incr present;
    Condition.broadcast changed;
    while !present < count do Condition.wait changed mutex done)

let () =
  let count = Gate.int_argument 1 10 in
  Gate.stop_at "ready";
  for _ = 1 to Gate.int_argument 2 1 do
    let present = ref 0 in
    let live () = Counting.write 1; meet present count in
    List.iter Domain.join (List.init count (fun _ -> Domain.spawn live))
  done;
  Gate.stop_at "done"
