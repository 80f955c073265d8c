(* SPDX-License-Identifier: MIT *)
(* wandering DIR: does its work in DIR, again and again, and waits for it in its own directory. Forks children there. *)

let work_in directory =
  Sys.chdir directory;
  Gate.churn 1;
  match Unix.fork () with
  | 0 -> Gate.churn 1; Unix._exit 0
  | child ->
    (match Unix.waitpid [] child with
     | _, WEXITED 0 -> ()
     | _ -> failwith "wrong exit status of a child")

let () =
  let own = Sys.getcwd () in
  Gate.stop_at "ready";
  for _ = 1 to 60 do
    work_in Sys.argv.(1);
    Sys.chdir own;
    for _ = 1 to 3 do Unix.sleepf 0.008 done
  done
