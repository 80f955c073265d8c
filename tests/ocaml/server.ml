(* SPDX-License-Identifier: MIT *)
(* server MILLISECONDS ALLOCATION COLLECT_EVERY TOGETHER: for that time serves requests at 500 random times a second, each
   a user span. ALLOCATION is how many lists a request makes; every COLLECT_EVERY-th one calls Gc.full_major, 0: none.
   TOGETHER is how many requests come at a time. *)

open Runtime_events

type User.tag += Request

let request = User.register "request" Request Type.span
let duration = float (Gate.int_argument 1 3_000) /. 1e3
let allocation = Gate.int_argument 2 100
let collect_every = Gate.int_argument 3 0
let together = Gate.int_argument 4 1

(* What the server holds: one of the lists of each request stays for a while. *)
let held = Array.make 5_000 []

let serve number =
  User.write request Type.Begin;
  for i = 1 to allocation do
    let list = List.init 100 (fun j -> i + j) in
    if i = 1 then held.(number mod Array.length held) <- list;
    ignore (Sys.opaque_identity list)
  done;
  if collect_every > 0 && number mod collect_every = 0 then Gc.full_major ();
  User.write request Type.End

let () =
  Random.self_init ();
  let start = Unix.gettimeofday () in
  let rec next number due =
    let now = Unix.gettimeofday () in
    if now -. start < duration then begin
      if due > now then Unix.sleepf (due -. now);
      for i = 1 to together do
        serve ((number * together) + i)
      done;
      next (number + 1) (due -. (log (1. -. Random.float 1.) /. 500.))
    end
  in
  next 1 start
