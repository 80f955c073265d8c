(* SPDX-License-Identifier: MIT *)
(* Works until its events are on, and forks a child; after a gate it forks another one. Both wait until their parent
   ends. *)

let ring_exists () =
  Gate.is_ring (Printf.sprintf "%s/%d.events" (Sys.getenv "OCAML_RUNTIME_EVENTS_DIR") (Unix.getpid ()))

let fork_child () =
  let inlet, outlet = Unix.pipe ~cloexec:true () in
  match Unix.fork () with
  | 0 ->
    Unix.close outlet;
    ignore (Unix.read inlet (Bytes.create 1) 0 1);
    exit 0
  | child ->
    Unix.close inlet;
    Gate.say "child %d" child;
    (child, outlet)

let end_child (child, outlet) =
  Unix.close outlet;
  assert (snd (Unix.waitpid [] child) = WEXITED 0)

let () =
  Gate.stop_at "ready";
  while not (ring_exists ()) do Gate.churn 1 done;
  let first = fork_child () in
  Gate.wait ();
  let second = fork_child () in
  Gate.stop_at "done";
  end_child second;
  end_child first
