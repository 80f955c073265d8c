(* SPDX-License-Identifier: MIT *)
(* A daemon of root that gives its rights up when its events are on, and forks later: a child that cannot make its ring
   would die. With "late" it waits for the test before that; with "root" it changes its root directory instead, with
   "mounts" its mount namespace. *)

external unshare_mounts : unit -> unit = "drop_user_unshare_mounts"

let () =
  Gate.stop_at "ready";
  let rings = Sys.getenv "OCAML_RUNTIME_EVENTS_DIR" in
  let ring = Printf.sprintf "%s/%d.events" rings (Unix.getpid ()) in
  while not (Gate.is_ring ring) do Gate.churn 1 done;
  let way = if Array.length Sys.argv > 1 then Sys.argv.(1) else "" in
  if way = "late" then Gate.stop_at "on";
  if way = "root" then Unix.chroot rings
  else if way = "mounts" then unshare_mounts ()
  else begin
    Unix.setgid 65534;
    Unix.setuid 65534
  end;
  Gate.stop_at "dropped";
  match Unix.fork () with
  | 0 ->
    Gate.churn 2;
    exit 0
  | child ->
    (match Unix.waitpid [] child with
     | _, WEXITED code -> Gate.say "child exited with %d" code
     | _, (WSIGNALED signal | WSTOPPED signal) -> Gate.say "child died by %d" signal)
