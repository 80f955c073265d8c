(* SPDX-License-Identifier: MIT *)
(* relay LEFT: writes steps, forks three children and execs itself at once, until LEFT programs have run under its
   pid; the last one waits for all children and prints "done". A child writes steps and at once execs a program that
   writes more. Each program prints "PID FIRST COUNT" of its steps. *)

let write first count =
  Gate.say "%d %d %d" (Unix.getpid ()) first count;
  Counting.write ~first count

let become arguments = Unix.execv Sys.executable_name (Array.of_list (Sys.executable_name :: arguments))

let rec reap () =
  match Unix.wait () with
  | _, WEXITED 0 -> reap ()
  | pid, _ -> failwith (Printf.sprintf "wrong exit status of %d" pid)
  | exception Unix.Unix_error (ECHILD, _, _) -> ()

let run left generation =
  write (1 + (1000 * generation)) (10 + (37 * generation mod 200));
  for child = 1 to 3 do
    if Unix.fork () = 0 then begin
      write 1 (5 * child);
      become [ "heir"; "1001" ]
    end
  done;
  if left > 1 then become [ string_of_int (left - 1); string_of_int (generation + 1) ];
  reap ();
  Gate.stop_at "done"

let () =
  match List.tl (Array.to_list Sys.argv) with
  | [ "heir"; first ] -> write (int_of_string first) 20
  | left -> (
    match List.map int_of_string left with
    | [ left ] -> run left 0
    | [ left; generation ] -> run left generation
    | _ -> failwith "usage: relay LEFT")
