(* SPDX-License-Identifier: MIT *)
(* A program of three domains that is built in many ways. Each domain writes its thread id to its ring, writes user
   events of every type and collects garbage. With the argument "await" it first works until its ring is there: somebody
   else has to switch its events on. With "again" behind it, it works again after the gate "done"; with "await" there, too, but not
   before its ring is there again, and has a gate "again" then; with "exec" it executes itself there, with "await". *)

open Runtime_events

let thread = User.register "thread" Vocabulary.Tag Type.int
let rounds = 20

let tid () = int_of_string (Filename.basename (Unix.readlink "/proc/thread-self"))

let work () =
  User.write thread (tid ());
  for round = 1 to rounds do
    User.write Vocabulary.request Type.Begin;
    User.write Vocabulary.number round;
    User.write Vocabulary.plain ();
    User.write Vocabulary.blob (Bytes.make round 'x');
    User.write Vocabulary.request Type.End
  done;
  Gate.churn 3;
  Unix.sleepf 0.001

(* The file of a ring may be that of the program which this one was before an exec. *)
let has_ring () =
  let maps = In_channel.with_open_bin "/proc/self/maps" In_channel.input_all in
  List.exists (String.ends_with ~suffix:".events") (String.split_on_char '\n' maps)

let await_ring () = while not (has_ring ()) do Gate.churn 1 done

let has_argument position name = Array.length Sys.argv > position && Sys.argv.(position) = name

let work_in_domains () =
  let others = List.init 2 (fun _ -> Domain.spawn work) in
  work ();
  List.iter Domain.join others;
  Gc.full_major ();
  Gate.say "wrote %d" (3 * (1 + (5 * rounds)))

let () =
  Gate.stop_at "ready";
  if has_argument 1 "await" then await_ring ();
  work_in_domains ();
  Gate.stop_at "done";
  if has_argument 2 "exec" then Unix.execv Sys.executable_name [| Sys.executable_name; "await"; "again" |];
  if has_argument 2 "await" then await_ring ();
  if has_argument 2 "again" || has_argument 2 "await" then work_in_domains ();
  if has_argument 2 "await" then Gate.stop_at "again"
