(* SPDX-License-Identifier: MIT *)
(* Writes the events of a program with Eio, byte for byte, without Eio: types and names as of
   lib_eio/runtime_events. A fiber "ticker" sleeps for 5 ms again and again; after some turns a fiber "worker" computes
   for 300 ms without letting it run. Another fiber waits for a promise of the worker, one fails and one is
   cancelled. *)

open Runtime_events

let integers_at buffer numbers =
  List.iteri (fun i number -> Bytes.set_int64_le buffer (8 * i) (Int64.of_int number)) numbers;
  8 * List.length numbers

let text_at buffer offset text =
  let length = min (Bytes.length buffer - offset) (String.length text) in
  Bytes.blit_string text 0 buffer offset length;
  offset + length

(* Nobody reads the events in this process. *)
let custom encode = Type.register ~encode ~decode:(fun _ _ -> failwith "not read here")
let text = custom (fun buffer text -> text_at buffer 0 text)
let id_and_text = custom (fun buffer (id, text) -> text_at buffer (integers_at buffer [ id ]) text)
let two_ids = custom (fun buffer (a, b) -> integers_at buffer [ a; b ])

let id_and_type =
  custom (fun buffer (id, kind) ->
      let length = integers_at buffer [ id ] in
      Bytes.set_int8 buffer length kind;
      length + 1)

type User.tag +=
  | Create_fiber | Create_cc | Create_obj | Exit_cc | Exit_fiber | Error | Name | Fiber | Suspend_fiber
  | Suspend_domain | Try_get | Put

let create_fiber = User.register "eio.create_fiber" Create_fiber two_ids
let create_cc = User.register "eio.create_cc" Create_cc id_and_type
let create_obj = User.register "eio.create_obj" Create_obj id_and_type
let exit_cc = User.register "eio.exit_cc" Exit_cc Type.unit
let exit_fiber = User.register "eio.exit_fiber" Exit_fiber Type.int
let error = User.register "eio.error" Error id_and_text
let name = User.register "eio.name" Name id_and_text
let fiber = User.register "eio.fiber" Fiber Type.int
let suspend_fiber = User.register "eio.suspend_fiber" Suspend_fiber text
let suspend_domain = User.register "eio.suspend_domain" Suspend_domain Type.span
let try_get = User.register "eio.try_get" Try_get Type.int
let put = User.register "eio.put" Put Type.int

let switch = 3 and root = 6 and promise = 15

let wait seconds =
  User.write suspend_domain Begin;
  ignore (Unix.select [] [] [] seconds);
  User.write suspend_domain End

(* As long as it takes, with some collections. *)
let compute seconds =
  let end_ = Unix.gettimeofday () +. seconds in
  while Unix.gettimeofday () < end_ do
    ignore (Sys.opaque_identity (Array.init 1000 string_of_int))
  done

let () =
  let main = 1 and ticker = 2 and worker = 3 and waiter = 4 and failing = 5 in
  User.write create_cc (100, root);
  User.write create_fiber (main, 100);
  User.write fiber main;
  User.write create_cc (101, switch);
  User.write name (101, "server");
  List.iter
    (fun (id, title, operation) ->
      User.write create_fiber (id, 101);
      User.write name (id, title);
      User.write fiber id;
      User.write suspend_fiber operation;
      User.write fiber main)
    [ (ticker, "ticker", "sleep"); (worker, "worker", "read") ];
  User.write create_obj (200, promise);
  User.write create_fiber (waiter, 101);
  User.write fiber waiter;
  User.write suspend_fiber "Promise.await";
  User.write try_get 200;
  User.write fiber main;
  User.write suspend_fiber "await_cancel";
  for _ = 1 to Gate.int_argument 1 10 do
    wait 0.005;
    User.write fiber ticker;
    User.write suspend_fiber "sleep"
  done;
  User.write fiber worker;
  compute 0.15;
  User.write put 200;
  compute 0.15;
  User.write suspend_fiber "read";
  User.write fiber waiter;
  User.write exit_fiber waiter;
  wait 0.;
  User.write fiber ticker;
  User.write suspend_fiber "sleep";
  wait 0.005;
  User.write fiber main;
  User.write create_fiber (failing, 101);
  User.write fiber failing;
  User.write error (101, Printexc.to_string (Failure "no more"));
  User.write exit_fiber failing;
  User.write fiber ticker;
  User.write exit_fiber ticker;
  User.write fiber main;
  User.write exit_cc ();
  User.write suspend_fiber "sleep";
  wait 0.005;
  User.write fiber main;
  User.write exit_fiber main
