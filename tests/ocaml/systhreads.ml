(* SPDX-License-Identifier: MIT *)
(* systhreads [K]: K threads of one domain that alternate; each prints "TID DOMAIN". *)

let tid () = Filename.basename (Unix.readlink "/proc/thread-self")

let () =
  Gate.stop_at "ready";
  let mutex = Mutex.create () in
  let work () =
    Mutex.protect mutex (fun () -> Gate.say "%s %d" (tid ()) (Domain.self_index ()));
    for _ = 1 to 50 do
      Gate.churn 1;
      Thread.yield ()
    done
  in
  List.iter Thread.join (List.init (Gate.int_argument 1 3) (fun _ -> Thread.create work ()));
  Gate.stop_at "done"
