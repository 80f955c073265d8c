(* SPDX-License-Identifier: MIT *)
(* spinner [K]: K domains besides the main one that never sleep. Each prints "TID DOMAIN". *)

let tid () = Filename.basename (Unix.readlink "/proc/thread-self")

let () =
  let count = Gate.int_argument 1 2 in
  let stop = Atomic.make false and running = Atomic.make 0 and mutex = Mutex.create () in
  let spin () =
    Mutex.protect mutex (fun () -> Gate.say "%s %d" (tid ()) (Domain.self_index ()));
    Atomic.incr running;
    while not (Atomic.get stop) do
      Domain.cpu_relax ()
    done
  in
  let domains = List.init count (fun _ -> Domain.spawn spin) in
  while Atomic.get running < count do
    Domain.cpu_relax ()
  done;
  Gate.stop_at "ready";
  Atomic.set stop true;
  List.iter Domain.join domains
