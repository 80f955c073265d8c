(* SPDX-License-Identifier: MIT *)
(* toil KIND: for each line "AMOUNT" on stdin a piece of work of that size; then prints how many seconds of cpu time and
   of run time it took. *)

external run_on : int -> unit = "toil_run_on"

type tree = Leaf | Node of tree * tree

let rec grow depth = if depth = 0 then Leaf else Node (grow (depth - 1), grow (depth - 1))
let rec count = function Leaf -> 1 | Node (left, right) -> count left + count right
let unit_of_work () = ignore (Sys.opaque_identity (count (grow 10)))

(* Some trees survive a minor collection, and garbage is found in the major heap. *)
let allocate amount =
  let kept = Array.make 64 Leaf in
  for round = 1 to amount do
    unit_of_work ();
    if round land 7 = 0 then kept.(round lsr 3 land 63) <- grow 8
  done;
  ignore (Sys.opaque_identity kept)

(* A domain on each cpu. *)
let together amount =
  let other = Domain.spawn (fun () -> run_on 1; allocate amount) in
  run_on 0;
  allocate amount;
  Domain.join other

let null = lazy (Unix.openfile "/dev/null" [ Unix.O_WRONLY ] 0)

let call amount =
  let file = Lazy.force null and byte = Bytes.make 1 'x' in
  for _ = 1 to amount do ignore (Unix.write file byte 0 1) done

(* With what the kernel adds, about 100 µs a round. *)
let wake amount =
  for _ = 1 to amount do
    Unix.sleepf 0.000_04;
    ignore (Sys.opaque_identity (count (grow 5)))
  done

let () =
  let work =
    match Sys.argv.(1) with
    | "alloc" -> allocate
    | "domains" -> together
    | "calls" -> call
    | "wakes" -> wake
    | other -> failwith ("no such work: " ^ other)
  in
  Gate.say "ready";
  try
    while true do
      let amount = int_of_string (input_line stdin) in
      let start = Unix.gettimeofday () and cpu = Sys.time () in
      work amount;
      Gate.say "%.6f %.6f" (Sys.time () -. cpu) (Unix.gettimeofday () -. start)
    done
  with End_of_file -> ()
