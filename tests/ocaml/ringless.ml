(* SPDX-License-Identifier: MIT *)
(* ringless MODE [N]: what a program without a ring does, with counts of its own to compare.
   work N: between two marks (phases explicit_gc_set) about N minor heaps of garbage and a full major collection.
   domains N: N domains, the one of index I asks for 10 * (I + 1) major slices.
   midway N: two domains ask for N minor collections each, while the first one switches events on; then it pauses them
   for N more, and resumes them for N more.
   storm N: N minor collections, as fast as it can; then the same again.
   fork N: a child that asks for N minor collections.
   nursery N CHILDREN: N minor collections; then so many children one after the other, each of which asks for N minor
   collections and is gone, and one that becomes another program at once.
   exec N PROGRAM ARGUMENT...: N minor collections; then it becomes PROGRAM. *)

let mark () = Gc.set (Gc.get ())
let minors n = for _ = 1 to n do Gc.minor () done

let work n =
  Gate.stop_at "ready";
  mark ();
  let before = (Gc.quick_stat ()).minor_collections in
  Gate.churn n;
  Gc.full_major ();
  let after = (Gc.quick_stat ()).minor_collections in
  mark ();
  Gate.say "minor %d" (after - before)

let domains n =
  Gate.stop_at "ready";
  let spawned = Atomic.make 0 and mutex = Mutex.create () in
  let slices () =
    (* All at once, so that each has an index of its own. *)
    Atomic.incr spawned;
    while Atomic.get spawned < n do Domain.cpu_relax () done;
    let index = Domain.self_index () in
    let count = 10 * (index + 1) in
    for _ = 1 to count do ignore (Gc.major_slice 1) done;
    Mutex.protect mutex (fun () -> Gate.say "domain %d %d" index count)
  in
  List.iter Domain.join (List.init n (fun _ -> Domain.spawn slices))

let midway n =
  Gate.stop_at "ready";
  let reached = Atomic.make 0 in
  let neighbour = Domain.spawn (fun () -> for _ = 1 to n do Gc.minor (); Atomic.incr reached done) in
  while Atomic.get reached < n / 2 do Domain.cpu_relax () done;
  minors (n / 2);
  Runtime_events.start ();
  minors (n - n / 2);
  Domain.join neighbour;
  Runtime_events.pause ();
  minors n;
  Runtime_events.resume ();
  minors n;
  Gate.say "collections %d" (Gc.quick_stat ()).minor_collections

let storm n =
  Gate.stop_at "ready";
  minors n;
  Gate.stop_at "stormed";
  minors n

let fork n =
  Gate.stop_at "ready";
  match Unix.fork () with
  | 0 -> minors n; exit 0
  | child ->
    ignore (Unix.waitpid [] child);
    Gate.say "child %d" child

let nursery n =
  Gate.stop_at "ready";
  minors n;
  Gate.stop_at "stormed";
  let raise_child word live =
    match Unix.fork () with
    | 0 -> live ()
    | child ->
      ignore (Unix.waitpid [] child);
      Gate.say "%s %d" word child in
  for _ = 1 to Gate.int_argument 3 1 do raise_child "child" (fun () -> minors n; Unix._exit 0) done;
  raise_child "spawned" (fun () -> Unix.execvp "true" [| "true" |])

let exec n =
  let next = Array.sub Sys.argv 3 (Array.length Sys.argv - 3) in
  Gate.stop_at "ready";
  minors n;
  Unix.execv next.(0) next

let () =
  let n = Gate.int_argument 2 10 in
  (match Sys.argv.(1) with
   | "work" -> work n
   | "domains" -> domains n
   | "midway" -> midway n
   | "storm" -> storm n
   | "fork" -> fork n
   | "nursery" -> nursery n
   | "exec" -> exec n
   | mode -> failwith mode);
  Gate.stop_at "done"
