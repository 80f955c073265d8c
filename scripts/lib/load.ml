(* SPDX-License-Identifier: MIT *)
(* A small service for the demo: two domains that allocate and sleep, with user events around each request. *)

module Events = Runtime_events

type Events.User.tag += Request | Queue

let request = Events.User.register "request" Request Events.Type.span
let queued = Events.User.register "queued" Queue Events.Type.int

let serve () =
  let cache = Array.make 512 [] in
  for number = 0 to max_int do
    Events.User.write queued (number mod 7);
    Events.User.write request Events.Type.Begin;
    for i = 0 to 2000 do
      cache.((number + i) land 511) <- List.init 20 (fun j -> i + j)
    done;
    Events.User.write request Events.Type.End;
    Unix.sleepf 0.002
  done

let () =
  let other = Domain.spawn serve in
  serve ();
  Domain.join other
