(* SPDX-License-Identifier: MIT *)
(* How test programs and tests keep step: a line "ready" on stdout, then a line on stdin (or its end) to go on. *)

let say format = Printf.ksprintf (fun line -> print_string line; print_char '\n'; flush stdout) format
let wait () = match input_line stdin with _ -> () | exception End_of_file -> ()

(* Tells the test that the program got here, and waits until it may go on. *)
let stop_at name = say "%s" name; wait ()

(* Allocates until the minor heap has turned over about [n] times; some of it survives. *)
let churn n =
  let kept = Array.make 64 [] in
  for round = 1 to n * 800 do
    kept.(round land 63) <- List.init 100 (fun i -> round + i)
  done;
  ignore (Sys.opaque_identity kept)

let int_argument position default =
  if Array.length Sys.argv > position then int_of_string Sys.argv.(position) else default
