(* SPDX-License-Identifier: MIT *)
(* stacks KIND: works for ever in a way that makes stacks of one kind. "point" stands still where it has printed its own
   call stack. *)

type _ Effect.t += Ask : int -> int Effect.t

external call_back : (unit -> unit) -> unit = "stacks_call_back"
external spin : int -> int = "stacks_spin" [@@noalloc]
external spin_float : (float[@unboxed]) -> (float[@unboxed]) = "stacks_spin_float_bytecode" "stacks_spin_float" [@@noalloc]
external checksum : string -> int = "stacks_checksum"

type tree = Leaf | Node of tree * tree

let[@inline never] rec grow depth = if depth = 0 then Leaf else Node (grow (depth - 1), grow (depth - 1))
let[@inline never] rec count = function Leaf -> 1 | Node (left, right) -> count left + count right
let keep value = ignore (Sys.opaque_identity value)
let text = String.make 1_000_000 'x'

let[@inline never] rec descend depth =
  if depth = 0 then count (grow 6) else 1 + descend (depth - 1)

let recursion () = keep (descend 60)
let digest () = keep (Digest.string text)
let minor () = keep (List.fold_left ( + ) 0 (List.init 5000 (fun i -> i + 1)))

(* The collector is called from within a [try], where two more words are on the stack. *)
let[@inline never] within_try n = try keep (ref n); keep (n, n); if n < 0 then raise Exit with Exit -> keep n
let tries () = for i = 1 to 1000 do within_try i done

let for_ever work = while true do work () done
let tree = lazy (grow 16)
let major () = keep (Lazy.force tree); Gc.full_major ()

let[@inline never] rec nested depth =
  if depth = 0 then (keep (checksum text); keep (Effect.perform (Ask 3)); keep (count (grow 8)))
  else
    Effect.Deep.match_with nested (depth - 1)
      { retc = (fun () -> keep depth);
        exnc = raise;
        effc = (fun (type answer) (asked : answer Effect.t) ->
          match asked with
          | Ask n when depth = 4 ->
            Some (fun (k : (answer, unit) Effect.Deep.continuation) -> Effect.Deep.continue k (n + count (grow 6)))
          | _ -> None) }

let fibers () = nested 5
let[@inline never] from_c () = keep (count (grow 10)); call_back (fun () -> keep (descend 20))
let callback () = call_back from_c
let noalloc () = keep (spin (Sys.opaque_identity 100_000))
let float () = keep (spin_float (Sys.opaque_identity 100_000.))

let[@inline never] rec fail depth = if depth = 0 then raise Not_found else 1 + fail (depth - 1)
let exceptions () = for i = 1 to 1000 do try keep (fail (i land 31)) with Not_found -> keep i done

(* Three times as long in one function as in the other. *)
let[@inline never] thrice () = for _ = 1 to 3 do keep (count (Lazy.force tree)) done
let[@inline never] once () = keep (count (Lazy.force tree))
let shares () = thrice (); once ()

(* Domain 1 is long in C, where it cannot stop for the collections of domain 0. *)
let big_text = lazy (String.make 20_000_000 'x')
let[@inline never] store () = keep (Digest.string (Lazy.force big_text))
let late () = keep (Domain.spawn (fun () -> for_ever store)); for_ever minor

let domains () = keep (Domain.spawn (fun () -> for_ever recursion)); for_ever minor
let systhreads () = for _ = 1 to 2 do keep (Thread.create for_ever recursion) done; for_ever digest

(* Prints the call stack as OCaml sees it. Its caller stands still in the same line as it calls this. *)
let[@inline never] print_stack () =
  let slots = Option.get (Printexc.backtrace_slots (Printexc.get_callstack 100)) in
  let print slot =
    match (Printexc.Slot.name slot, Printexc.Slot.location slot) with
    | Some name, Some { filename; line_number; _ } -> Gate.say "%s %s %d" name filename line_number
    | _ -> ()
  in
  Array.iter print slots

let[@inline always] small work = work (); keep (checksum "")
let[@inline never] inner () = small (fun () -> print_stack (); Gate.stop_at "still"; keep 0); keep 1
let[@inline never] middle () = inner (); keep 2

(* A callback within a fiber would hide the fiber's parent until it returns. *)
let[@inline never] outer () =
  call_back (fun () -> Effect.Deep.match_with middle () { retc = Fun.id; exnc = raise; effc = (fun _ -> None) }; keep 3)

let () =
  let work =
    match Sys.argv.(1) with
    | "recursion" -> recursion
    | "digest" -> digest
    | "minor" -> minor
    | "tries" -> tries
    | "major" -> major
    | "fibers" -> fibers
    | "callback" -> callback
    | "noalloc" -> noalloc
    | "float" -> float
    | "exceptions" -> Printexc.record_backtrace true; exceptions
    | "shares" -> shares
    | "late" -> late
    | "domains" -> domains
    | "systhreads" -> systhreads
    | "sleep" -> fun () -> Unix.sleepf 0.000_2
    | "point" -> outer
    | other -> failwith ("no such work: " ^ other)
  in
  Gate.say "ready";
  for_ever work
