(* SPDX-License-Identifier: MIT *)
(* crew [DOMAINS]: domains, including the main one, each with its own thread and one of the systhreads library. All
   alternate between computing and sleeping. Each thread prints "TID DOMAIN KIND" with KIND "own" or "systhread". *)

let tid () = Filename.basename (Unix.readlink "/proc/thread-self")
let stop = Atomic.make false
let said = Mutex.create ()

let work kind () =
  Mutex.protect said (fun () -> Gate.say "%s %d %s" (tid ()) (Domain.self_index ()) kind);
  while not (Atomic.get stop) do
    Gate.churn 1;
    Unix.sleepf 0.002
  done

let serve () =
  let thread = Thread.create (work "systhread") () in
  work "own" ();
  Thread.join thread

let () =
  let domains = List.init (Gate.int_argument 1 2) (fun _ -> Domain.spawn serve) in
  let gatekeeper = Thread.create (fun () -> Gate.stop_at "ready"; Atomic.set stop true) () in
  serve ();
  Thread.join gatekeeper;
  List.iter Domain.join domains
