(* SPDX-License-Identifier: MIT *)
(* stacked KIND: prints "ready" and does one thing until it is killed: see the table below. *)

external spin_in_c : int -> int = "stacked_spin"
external call_back : (unit -> int) -> int = "stacked_call_back"
external spin_noalloc : (int[@untagged]) -> (int[@untagged]) = "stacked_spin" "stacked_spin_noalloc" [@@noalloc]

let rec nested depth work = if depth = 0 then work () else Sys.opaque_identity (nested (depth - 1) work) + 1

let spin () =
  let sum = ref 0 in
  while Sys.opaque_identity true do
    sum := Sys.opaque_identity (!sum + 1)
  done;
  !sum

let forever work () =
  while Sys.opaque_identity true do
    ignore (Sys.opaque_identity (work ()))
  done;
  0

type _ Effect.t += Never : unit Effect.t

let rec in_fibers count work =
  if count = 0 then work ()
  else
    Effect.Deep.match_with
      (fun () -> nested 3 (fun () -> in_fibers (count - 1) work))
      ()
      { retc = (fun result -> result + 1); exnc = raise; effc = (fun _ -> None) }

let rec raise_at depth = if depth = 0 then raise Not_found else raise_at (depth - 1) + 1

let works =
  [
    ("ocaml", fun () -> nested 50 spin);
    ("c", fun () -> nested 50 (forever (fun () -> spin_in_c 1_000_000)));
    ("noalloc", fun () -> nested 50 (forever (fun () -> spin_noalloc 1_000_000)));
    ("fibers", fun () -> in_fibers 5 (forever (fun () -> spin_in_c 1_000_000)));
    ("callbacks", fun () -> in_fibers 1 (fun () -> call_back (fun () -> in_fibers 1 (fun () -> call_back spin))));
    ("deep", fun () -> nested 20_000 spin);
    ("raise", fun () -> nested 50 (forever (fun () -> try raise_at 10 with Not_found -> 0)));
    ("collect", fun () -> nested 50 (forever (fun () -> Gc.minor (); 0)));
    ("allocate", fun () -> nested 50 (forever (fun () -> List.length (List.init 100 Fun.id))));
    ("sleep", fun () -> nested 50 (forever (fun () -> Unix.sleepf 0.002; 0)));
    ("doze", fun () -> nested 50 (forever (fun () -> Unix.sleepf 0.000_05; 0)));
    ("read", fun () -> nested 50 (forever (fun () -> Unix.read Unix.stdin (Bytes.create 10) 0 10)));
    ( "threads",
      fun () ->
        for _ = 1 to 2 do
          ignore (Thread.create (fun () -> nested 20 (forever (fun () -> Unix.sleepf 0.003; 0))) ())
        done;
        nested 50 spin );
    ( "domains",
      fun () ->
        ignore (Domain.spawn (fun () -> nested 20 spin));
        nested 50 spin );
  ]

let () =
  Printexc.record_backtrace true;
  let work = List.assoc Sys.argv.(1) works in
  Gate.say "ready";
  ignore (work ())
