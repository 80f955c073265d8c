(* SPDX-License-Identifier: MIT *)
(* chatty FILE PROGRAM [ARGUMENT...]: a domain writes steps in a loop while the main domain execs PROGRAM. FILE
   holds two 64-bit numbers: steps begun and steps written. *)

let () =
  let file = Unix.openfile Sys.argv.(1) [ O_RDWR; O_CREAT ] 0o600 in
  let progress = Bigarray.(array1_of_genarray (Unix.map_file file int64 c_layout true [| 2 |])) in
  let rec talk number =
    progress.{0} <- Int64.of_int number;
    Counting.write ~first:number 1;
    progress.{1} <- Int64.of_int number;
    for _ = 1 to 200 do Domain.cpu_relax () done;
    talk (number + 1)
  in
  let (_ : unit Domain.t) = Domain.spawn (fun () -> talk 1) in
  Gate.stop_at "ready";
  while progress.{1} < 100L do Domain.cpu_relax () done;
  let arguments = Array.sub Sys.argv 2 (Array.length Sys.argv - 2) in
  Unix.execv arguments.(0) arguments
