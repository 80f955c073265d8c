(* SPDX-License-Identifier: MIT *)
(* workloads KIND: one kind of work, for some tenths of a second, that events which are switched on meanwhile must not
   disturb. Prints a result that is the same each time. Without KIND: prints all kinds. The kind "await" works until its
   ring is there, and looks for it again after a gate. *)

open Effect
open Effect.Deep

let say = Gate.say
let repeat count work = for i = 1 to count do work i done

(* Each with its own sum, which must come out right. *)
let sum count =
  let rec go sum i = if i > count then sum else go (sum + List.fold_left ( + ) 0 (List.init 50 (fun j -> i + j))) (i + 1) in
  go 0 1

let alloc () = say "sum %d" (sum 200_000)

let domains () =
  let other = Domain.spawn (fun () -> sum 100_000) in
  let own = sum 100_000 in
  say "sums %d %d" own (Domain.join other)

let spawn () =
  let total = ref 0 in
  repeat 100 (fun i -> total := !total + Domain.join (Domain.spawn (fun () -> sum (i * 20))));
  say "sum %d" !total

(* Threads take turns by what a program's events are switched on with: if that broke, one of them would stop. *)
let take_turns count rounds =
  let turns = Array.init count (fun _ -> Atomic.make 0) and stop = Atomic.make false in
  let work i = while not (Atomic.get stop) do ignore (Sys.opaque_identity (sum 50)); Atomic.incr turns.(i) done in
  let threads = List.init count (Thread.create work) in
  repeat rounds (fun _ ->
      let before = Array.map Atomic.get turns in
      while Array.exists2 (fun now before -> Atomic.get now = before) turns before do Thread.delay 0.001 done);
  Atomic.set stop true;
  List.iter Thread.join threads;
  say "%d threads took turns" count

let threads () = take_turns 4 4

let late_threads () =
  let before = sum 100_000 in
  take_turns 2 4;
  say "sum %d" before

let signals () =
  let count = Atomic.make 0 in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle (fun _ -> Atomic.incr count));
  let interval = { Unix.it_interval = 0.001; it_value = 0.001 } in
  ignore (Unix.setitimer Unix.ITIMER_REAL interval);
  while Atomic.get count < 200 do ignore (Sys.opaque_identity (sum 100)) done;
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.; it_value = 0. });
  say "200 signals"

exception Interrupted

let raising_signals () =
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle (fun _ -> raise Interrupted));
  let interrupted = ref 0 in
  repeat 100 (fun _ ->
      match
        ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.; it_value = 0.001 });
        while true do ignore (Sys.opaque_identity (sum 100)) done
      with
      | () -> ()
      | exception Interrupted -> incr interrupted);
  say "%d interrupted" !interrupted

let finalisers () =
  let finalised = ref 0 in
  repeat 200_000 (fun i ->
      let value = ref i in
      Gc.finalise (fun _ -> incr finalised) value;
      if i mod 20_000 = 0 then Gc.full_major ());
  Gc.full_major ();
  say "finalised %b" (!finalised > 190_000)

let weak () =
  let table = Weak.create 1000 in
  repeat 4_000_000 (fun i -> Weak.set table (i mod 1000) (Some (ref i)));
  Gc.full_major ();
  say "all gone %b" (List.for_all (fun i -> not (Weak.check table i)) (List.init 1000 Fun.id))

type _ Effect.t += Yield : int -> int Effect.t

let effects () =
  let fiber i () = List.fold_left (fun total j -> total + perform (Yield (i + j))) 0 (List.init 2_000 Fun.id) in
  let run i =
    match_with (fiber i) ()
      {
        retc = Fun.id;
        exnc = raise;
        effc =
          (fun (type a) (performed : a Effect.t) ->
            match performed with
            | Yield n -> Some (fun (k : (a, _) continuation) -> continue k (n + (sum 3 land 1)))
            | _ -> None);
      }
  in
  say "sum %d" (List.fold_left (fun total i -> total + run i) 0 (List.init 60 Fun.id))

let deep () =
  let rec depth n = if n = 0 then 0 else 1 + depth (n - 1) in
  let total = ref 0 in
  repeat 60 (fun i -> total := !total + depth (i * 4_000));
  say "depth %d" !total

let exceptions () =
  let caught = ref 0 in
  let rec fail n = if n = 0 then raise Not_found else 1 + fail (n - 1) in
  repeat 1_000_000 (fun i -> try ignore (fail (i mod 200)) with Not_found -> incr caught);
  say "caught %d" !caught

let fork () =
  let right = ref 0 in
  repeat 30 (fun i ->
      match Unix.fork () with
      | 0 ->
          Gate.churn 2;
          Unix._exit i
      | pid -> (
          Gate.churn 1;
          match Unix.waitpid [] pid with _, Unix.WEXITED code when code = i -> incr right | _ -> ()));
  say "%d children were right" !right

(* Runs itself again, so many times. *)
let exec () =
  let left = Gate.int_argument 2 20 in
  Gate.churn 5;
  if left = 0 then say "20 programs"
  else Unix.execv Sys.executable_name [| Sys.executable_name; "exec"; string_of_int (left - 1) |]

let sleep () =
  let total = ref 0 in
  repeat 200 (fun _ -> Unix.sleepf 0.002; total := !total + sum 100);
  say "sum %d" !total

let compact () =
  let kept = List.init 1000 (fun i -> Bytes.make (i + 1) 'x') in
  repeat 300 (fun _ -> Gate.churn 1; Gc.compact ());
  say "bytes %d" (List.fold_left (fun total bytes -> total + Bytes.length bytes) 0 kept)

let pipes () =
  let reading, writing = Unix.pipe () in
  let writer =
    Thread.create
      (fun () ->
        let out = Unix.out_channel_of_descr writing in
        repeat 500_000 (fun i -> Printf.fprintf out "%d\n" i);
        close_out out)
      ()
  in
  let input = Unix.in_channel_of_descr reading in
  let rec go total = match input_line input with line -> go (total + int_of_string line) | exception End_of_file -> total in
  let total = go 0 in
  Thread.join writer;
  say "sum %d" total

let ping_pong () =
  let mutex = Mutex.create () and changed = Condition.create () and turn = ref 0 in
  let play mine () =
    repeat 20_000 (fun _ ->
        Mutex.lock mutex;
        while !turn <> mine do Condition.wait changed mutex done;
        turn := 1 - mine;
        Condition.broadcast changed;
        Mutex.unlock mutex)
  in
  let other = Domain.spawn (play 1) in
  play 0 ();
  Domain.join other;
  say "turn %d" !turn

let marshal () =
  let value = List.init 5_000 (fun i -> (i, string_of_int i)) in
  let bytes = ref 0 in
  repeat 300 (fun _ ->
      let text = Marshal.to_string value [] in
      bytes := !bytes + String.length text;
      if Marshal.from_string text 0 <> value then say "differs");
  say "bytes %d" !bytes

let short () = Gate.churn 1; say "short"

let ends () =
  at_exit (fun () -> say "at exit");
  ignore (Domain.spawn (fun () -> while true do Gate.churn 1 done));
  Gate.churn 80;
  exit 3

let await () =
  let ring = Printf.sprintf "%s/%d.events" (Sys.getenv "OCAML_RUNTIME_EVENTS_DIR") (Unix.getpid ()) in
  say "waits";
  while not (Gate.is_ring ring) do Gate.churn 1 done;
  Gate.stop_at "ring is there";
  say "then it is %s" (if Gate.is_ring ring then "there" else "gone")

let kinds =
  [ ("alloc", alloc); ("domains", domains); ("spawn", spawn); ("threads", threads); ("late_threads", late_threads);
    ("signals", signals); ("raising_signals", raising_signals); ("finalisers", finalisers); ("weak", weak);
    ("effects", effects); ("deep", deep); ("exceptions", exceptions); ("fork", fork); ("exec", exec); ("sleep", sleep);
    ("compact", compact); ("pipes", pipes); ("ping_pong", ping_pong); ("marshal", marshal); ("short", short);
    ("ends", ends) ]

let () =
  match Sys.argv with
  | [| _ |] -> List.iter (fun (kind, _) -> print_endline kind) kinds
  | argv ->
      if Array.length argv = 2 then Gate.stop_at "ready";
      (List.assoc argv.(1) (("await", await) :: kinds)) ()
