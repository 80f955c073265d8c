(* SPDX-License-Identifier: MIT *)
(* oracle DIR PID [GATES]: what OCaml's own consumer reads from DIR/PID.events, one event a line:
   domain, time, kind, name, value, with tabs between; name and custom bytes in hexadecimal, "-" where there is none.
   With GATES the reader stops that often when there is nothing more to read, and goes on with the same cursor.
   oracle DIR -: the same for each pid that comes as a line on stdin, with a line "drained" behind each. *)

open Runtime_events

let hex text =
  if text = "" then "-"
  else String.concat "" (List.map (fun c -> Printf.sprintf "%02x" (Char.code c)) (List.of_seq (String.to_seq text)))

let line domain time kind name value =
  Printf.printf "%d\t%Ld\t%s\t%s\t%s\n" domain (Timestamp.to_int64 time) kind (hex name) value

(* The end event of a ring has no value; the reader of OCaml 5.1 takes the next word for one. *)
let datum event = function Some value when event <> EV_RING_STOP -> string_of_int value | _ -> "0"
let buckets counts = String.concat "," (List.map string_of_int (Array.to_list counts))

let user kind value domain time event datum = line domain time kind (User.name event) (value datum)

let span domain time event edge =
  line domain time (match edge with Type.Begin -> "user_begin" | Type.End -> "user_end") (User.name event) "-"

let callbacks =
  Callbacks.create ()
    ~runtime_begin:(fun domain time phase -> line domain time "begin" (runtime_phase_name phase) "-")
    ~runtime_end:(fun domain time phase -> line domain time "end" (runtime_phase_name phase) "-")
    ~runtime_counter:(fun domain time counter value ->
      line domain time "counter" (runtime_counter_name counter) (string_of_int value))
    ~alloc:(fun domain time counts -> line domain time "alloc" "" (buckets counts))
    ~lifecycle:(fun domain time event value -> line domain time "lifecycle" (lifecycle_name event) (datum event value))
    ~lost_events:(fun domain words -> Printf.printf "%d\t0\tlost\t-\t%d\n" domain words)
  |> Callbacks.add_user_event Type.unit (user "user_unit" (fun () -> "-"))
  |> Callbacks.add_user_event Type.int (user "user_int" string_of_int)
  |> Callbacks.add_user_event Type.span span
  |> Callbacks.add_user_event Vocabulary.bytes_type (user "user_custom" (fun bytes -> hex (Bytes.to_string bytes)))

let with_cursor pid act =
  let cursor = create_cursor (Some (Sys.argv.(1), pid)) in
  (* read_poll does not count user units, so it may return 0 too early. Twice in a row is the end. *)
  let rec drain idle =
    if idle < 2 then drain (if read_poll cursor callbacks None = 0 then idle + 1 else 0)
  in
  drain 0;
  act drain;
  free_cursor cursor

let () =
  match Sys.argv.(2) with
  | "-" ->
    In_channel.fold_lines
      (fun () pid -> with_cursor (int_of_string pid) (fun _ -> Gate.say "drained"))
      () stdin
  | pid ->
    with_cursor (int_of_string pid) (fun drain ->
      for _ = 1 to Gate.int_argument 3 0 do
        Gate.stop_at "drained";
        drain 0
      done)
