(* SPDX-License-Identifier: MIT *)
(* A program of three domains that is built in many ways. Each domain writes its thread id to its ring, writes user
   events of every type and collects garbage. With the argument "await" it first works until its ring is there: somebody
   else has to switch its events on. *)

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

let await_ring () =
  let ring = Printf.sprintf "%s/%d.events" (Sys.getenv "OCAML_RUNTIME_EVENTS_DIR") (Unix.getpid ()) in
  while not (Sys.file_exists ring) do Gate.churn 1 done

let () =
  Gate.stop_at "ready";
  if Array.length Sys.argv > 1 && Sys.argv.(1) = "await" then await_ring ();
  let others = List.init 2 (fun _ -> Domain.spawn work) in
  work ();
  List.iter Domain.join others;
  Gc.full_major ();
  Gate.say "wrote %d" (3 * (1 + (5 * rounds)));
  Gate.stop_at "done"
