(* SPDX-License-Identifier: MIT *)
(* Runs for a few milliseconds. *)

let () = print_endline "hello"
