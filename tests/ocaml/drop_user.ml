(* SPDX-License-Identifier: MIT *)
(* A daemon of root that gives its rights up when its events are on, and forks later: a child that cannot make its ring
   would die. *)

let () =
  Gate.stop_at "ready";
  let ring = Printf.sprintf "%s/%d.events" (Sys.getenv "OCAML_RUNTIME_EVENTS_DIR") (Unix.getpid ()) in
  while not (Gate.is_ring ring) do Gate.churn 1 done;
  Unix.setgid 65534;
  Unix.setuid 65534;
  Gate.stop_at "dropped";
  match Unix.fork () with
  | 0 ->
    Gate.churn 2;
    exit 0
  | child ->
    (match Unix.waitpid [] child with
     | _, WEXITED code -> Gate.say "child exited with %d" code
     | _, (WSIGNALED signal | WSTOPPED signal) -> Gate.say "child died by %d" signal)
