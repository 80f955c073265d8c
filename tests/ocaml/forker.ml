(* SPDX-License-Identifier: MIT *)
(* Forks with Unix.fork; parent and child collect garbage. The child exits with status 5. *)

let () =
  Gate.stop_at "ready";
  Gate.churn 2;
  match Unix.fork () with
  | 0 ->
    Gate.churn 2;
    Gc.full_major ();
    exit 5
  | child ->
    Gate.churn 2;
    (match Unix.waitpid [] child with
     | _, WEXITED 5 -> Gate.say "child %d" child
     | _ -> failwith "wrong exit status of the child");
    Gate.stop_at "done"
