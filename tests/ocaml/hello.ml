(* SPDX-License-Identifier: MIT *)
(* Lives for a few milliseconds. *)

let () = print_endline "hello"
