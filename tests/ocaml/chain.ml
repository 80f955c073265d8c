(* SPDX-License-Identifier: MIT *)
(* chain STEPS [wait] [PROGRAM ARGUMENT...]: writes steps and execs PROGRAM. With "wait" there is a gate first. *)

let () =
  let arguments = List.tl (Array.to_list Sys.argv) in
  let steps, next = (int_of_string (List.hd arguments), List.tl arguments) in
  let wait, next = match next with "wait" :: next -> (true, next) | _ -> (false, next) in
  if wait then Gate.stop_at "ready";
  Counting.write steps;
  match next with
  | [] -> ()
  | program :: _ -> Unix.execv program (Array.of_list next)
