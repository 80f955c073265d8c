(* SPDX-License-Identifier: MIT *)
(* storm CHILDREN [AT_ONCE]: forks CHILDREN times with Unix.fork. Each child writes steps and ends, every second one
   without running the runtime's exit code. Prints "PID STEPS" of each. *)

let live steps leave =
  Counting.write steps;
  Gate.churn 1;
  if leave then Unix._exit 0 else exit 0

let () =
  let children = Gate.int_argument 1 100 and at_once = Gate.int_argument 2 20 in
  let alive = ref 0 in
  let reap () =
    match Unix.wait () with
    | _, WEXITED 0 -> decr alive
    | pid, _ -> failwith (Printf.sprintf "wrong exit status of %d" pid)
  in
  Gate.stop_at "ready";
  for number = 1 to children do
    if !alive = at_once then reap ();
    let steps = 1 + number mod 7 in
    match Unix.fork () with
    | 0 -> live steps (number mod 2 = 0)
    | pid ->
      incr alive;
      Gate.say "%d %d" pid steps
  done;
  while !alive > 0 do reap () done;
  Gate.stop_at "done"
