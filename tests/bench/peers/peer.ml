(* SPDX-License-Identifier: MIT *)
(* OCaml's two readers of runtime events, made to do as little as a reader can: count events and add up their times.

     peer decode c|ocaml DIR PID              at each line "TIMES fresh|touched" on stdin: reads the ring so many
                                              times with a new cursor, and says "NS EVENTS SUM"
     peer follow c|ocaml DIR PID INTERVAL_US  says "ready", polls until SIGTERM, then says
                                              "EVENTS LOST-WORDS POLLS FAILED-POLLS CPU-NS"
     peer write DIR PID INTERVAL_US FILE      says "ready", writes each event to FILE until SIGTERM, then says
                                              "EVENTS LOST-WORDS" *)

external c_open : string -> int -> unit = "bench_c_open"
external c_close : unit -> unit = "bench_c_close"
external c_poll : unit -> int = "bench_c_poll" [@@noalloc]
external c_events : unit -> int = "bench_c_events" [@@noalloc]
external c_time_sum : unit -> int = "bench_c_time_sum" [@@noalloc]
external c_lost : unit -> int = "bench_c_lost" [@@noalloc]
external cpu_ns : unit -> int = "bench_cpu_ns" [@@noalloc]
external sleep_us : int -> unit = "bench_sleep_us" [@@noalloc]
external stop_at_sigterm : unit -> unit = "bench_stop_at_sigterm"
external stopped : unit -> bool = "bench_stopped" [@@noalloc]
external touch_rings : unit -> unit = "bench_touch_rings"
external plain_reader : string -> int -> int -> string -> bool = "bench_plain_reader"

type reader = {
  open_ring : string -> int -> unit;
  close_ring : unit -> unit;
  poll : unit -> int;  (** events seen by this poll, or -1 if it failed *)
  events : unit -> int;
  time_sum : unit -> int;
  lost : unit -> int;
}

let c_reader =
  { open_ring = c_open; close_ring = c_close; poll = c_poll; events = c_events; time_sum = c_time_sum; lost = c_lost }

module Events = Runtime_events

type Events.User.tag += Payload

(* The reader drops a custom event unless this program has registered its name. *)
let payload =
  Events.Type.register
    ~encode:(fun buffer text ->
      Bytes.blit_string text 0 buffer 0 (String.length text);
      String.length text)
    ~decode:(fun buffer size -> Bytes.sub_string buffer 0 size)

let _ : string Events.User.t = Events.User.register "bench.payload" Payload payload

let ocaml_reader =
  let events = ref 0 and time_sum = ref 0 and lost = ref 0 in
  let see time =
    incr events;
    time_sum := !time_sum + Int64.to_int (Events.Timestamp.to_int64 time)
  in
  let user _ time _ _ = see time in
  let callbacks =
    Events.Callbacks.create
      ~runtime_begin:(fun _ time _ -> see time)
      ~runtime_end:(fun _ time _ -> see time)
      ~runtime_counter:(fun _ time _ _ -> see time)
      ~alloc:(fun _ time _ -> see time)
      ~lifecycle:(fun _ time _ _ -> see time)
      ~lost_events:(fun _ words -> lost := !lost + words)
      ()
    |> Events.Callbacks.add_user_event Events.Type.unit user
    |> Events.Callbacks.add_user_event Events.Type.int user
    |> Events.Callbacks.add_user_event Events.Type.span user
    |> Events.Callbacks.add_user_event payload user
  in
  let cursor = ref None in
  let poll () =
    let before = !events in
    match Events.read_poll (Option.get !cursor) callbacks None with
    | _ -> !events - before
    | exception Failure _ -> -1
  in
  {
    open_ring = (fun directory pid -> cursor := Some (Events.create_cursor (Some (directory, pid))));
    close_ring = (fun () -> Option.iter Events.free_cursor !cursor);
    poll;
    events = (fun () -> !events);
    time_sum = (fun () -> !time_sum);
    lost = (fun () -> !lost);
  }

let decode reader directory pid =
  let round times touched =
    let ns = ref 0 in
    for _ = 1 to times do
      reader.open_ring directory pid;
      if touched then touch_rings ();
      let start = cpu_ns () in
      while reader.poll () > 0 do
        ()
      done;
      ns := !ns + cpu_ns () - start;
      reader.close_ring ()
    done;
    !ns
  in
  try
    while true do
      let events = reader.events () and sum = reader.time_sum () in
      let ns = Scanf.sscanf (read_line ()) "%d %s" (fun times how -> round times (how = "touched")) in
      Printf.printf "%d %d %d\ndone\n%!" ns (reader.events () - events) (reader.time_sum () - sum)
    done
  with End_of_file -> ()

let follow reader directory pid interval_us =
  stop_at_sigterm ();
  reader.open_ring directory pid;
  touch_rings ();
  (* Skips what the ring held before. *)
  ignore (reader.poll ());
  let events = reader.events () and lost = reader.lost () and start = cpu_ns () in
  let polls = ref 0 and failed = ref 0 in
  print_string "ready\n";
  flush stdout;
  let poll () =
    incr polls;
    let seen = reader.poll () in
    if seen < 0 then incr failed;
    seen
  in
  while not (stopped ()) do
    ignore (poll ());
    sleep_us interval_us
  done;
  while poll () > 0 do
    ()
  done;
  Printf.printf "%d %d %d %d %d\n%!" (reader.events () - events) (reader.lost () - lost) !polls !failed
    (cpu_ns () - start)

let reader_of = function
  | "c" -> c_reader
  | "ocaml" -> ocaml_reader
  | other -> failwith ("no such reader: " ^ other)

let () =
  match Array.to_list Sys.argv with
  | [ _; "decode"; reader; directory; pid ] -> decode (reader_of reader) directory (int_of_string pid)
  | [ _; "follow"; reader; directory; pid; interval ] ->
      follow (reader_of reader) directory (int_of_string pid) (int_of_string interval)
  | [ _; "write"; directory; pid; interval; file ] ->
      if not (plain_reader directory (int_of_string pid) (int_of_string interval) file) then
        failwith "cannot open the ring or the file"
  | _ ->
      prerr_endline "usage: peer decode READER DIR PID | follow READER DIR PID INTERVAL_US | write DIR PID INTERVAL_US FILE";
      exit 2
