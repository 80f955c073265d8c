(* SPDX-License-Identifier: MIT *)
(* Synchronises test programs with tests: a gate prints a line "ready" and waits for a line on stdin or its end. *)

(* In one piece: several threads may print. *)
let say format = Printf.ksprintf (fun line -> print_string (line ^ "\n"); flush stdout) format
let wait () = match input_line stdin with _ -> () | exception End_of_file -> ()

(* Prints "ready" and waits for the test. *)
let stop_at name = say "%s" name; wait ()

(* Allocates about [n] minor heaps; some values survive. *)
let churn n =
  let kept = Array.make 64 [] in
  for round = 1 to n * 800 do
    kept.(round land 63) <- List.init 100 (fun i -> round + i)
  done;
  ignore (Sys.opaque_identity kept)

let int_argument position default =
  if Array.length Sys.argv > position then int_of_string Sys.argv.(position) else default

(* Whether a runtime writes to this file of a ring: enabling makes it first, empty. *)
let is_ring path =
  match In_channel.with_open_bin path In_channel.length with
  | length -> length > 0L
  | exception Sys_error _ -> false
