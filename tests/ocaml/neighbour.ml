(* SPDX-License-Identifier: MIT *)
(* neighbour HOW [MINORS [BLOCKS]]: domain 1 does HOW, while domain 0, between the lines "ready" and "done", runs
   MINORS minor collections that promote BLOCKS blocks each. HOW is "read" (waits for a pipe, so that its backup
   thread takes part in collections), "compute" (a loop with safepoints) or "digest" (a sequence of long C calls
   without a safepoint). Both domains print "TID DOMAIN". The kernel's counts for the thread of domain 0 during its
   collections are printed as "schedstat ON-CPU-NS RUN-DELAY-NS". *)

let tid () = Filename.basename (Unix.readlink "/proc/thread-self")
let introduce () = Gate.say "%s %d" (tid ()) (Domain.self_index ())

let neighbour how stop pipe =
  let upload = String.make (if how = "digest" then 20_000_000 else 0) 'x' in
  introduce ();
  let work =
    match how with
    | "read" -> fun () -> ignore (Unix.read pipe (Bytes.create 1) 0 1)
    | "compute" -> fun () -> for i = 1 to 1000 do ignore (Sys.opaque_identity i) done
    | "digest" -> fun () -> ignore (Sys.opaque_identity (Digest.string upload))
    | _ -> invalid_arg how
  in
  fun () -> while not (Atomic.get stop) do work () done

let schedstat () =
  let channel = open_in "/proc/thread-self/schedstat" in
  let figures = Scanf.sscanf (input_line channel) "%d %d" (fun on_cpu delay -> (on_cpu, delay)) in
  close_in channel;
  figures

let () =
  let how = Sys.argv.(1) and minors = Gate.int_argument 2 5 and blocks = Gate.int_argument 3 0 in
  let stop = Atomic.make false and working = Atomic.make false in
  let receive, send = Unix.pipe () in
  introduce ();
  (* Avoids automatic collections. *)
  Gc.set { (Gc.get ()) with minor_heap_size = 262_144 + (8 * blocks) };
  let domain =
    Domain.spawn (fun () ->
      let work = neighbour how stop receive in
      Atomic.set working true;
      work ())
  in
  while not (Atomic.get working) do Unix.sleepf 0.001 done;
  Gate.stop_at "ready";
  let on_cpu = ref 0 and delay = ref 0 in
  for _ = 1 to minors do
    let live = List.init blocks (fun i -> Some i) in
    let on_cpu_before, delay_before = schedstat () in
    Gc.minor ();
    let on_cpu_after, delay_after = schedstat () in
    ignore (Sys.opaque_identity live);
    on_cpu := !on_cpu + on_cpu_after - on_cpu_before;
    delay := !delay + delay_after - delay_before
  done;
  Gate.say "schedstat %d %d" !on_cpu !delay;
  Gate.say "collected";
  Atomic.set stop true;
  ignore (Unix.write_substring send "x" 0 1);
  Domain.join domain;
  Gate.stop_at "done"
