(* SPDX-License-Identifier: MIT *)
(* Runs /bin/true eight times, one after the other: children that live for a few milliseconds. Then it sleeps. *)

let () =
  Gate.stop_at "ready";
  for _ = 1 to 8 do
    let child = Unix.create_process "/bin/true" [| "true" |] Unix.stdin Unix.stdout Unix.stderr in
    match Unix.waitpid [] child with
    | _, WEXITED 0 -> ()
    | _ -> failwith "wrong exit status of /bin/true"
  done;
  Gate.stop_at "spawned"
