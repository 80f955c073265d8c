(* SPDX-License-Identifier: MIT *)
(* Writes user spans that compute, sleep and collect garbage, so many of each, and prints how long they were in all, in
   ns. *)

open Runtime_events

type User.tag += Kind

let kinds =
  [ ("compute", fun () -> let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2) in
                          ignore (Sys.opaque_identity (fib 32)));
    ("sleep", fun () -> Unix.sleepf 0.02);
    ("collect", fun () -> Gc.full_major ()) ]

let () =
  let kept = List.init 500_000 string_of_int in
  let measure (name, run) =
    let span = User.register name Kind Type.span in
    let all = ref 0. in
    for _ = 1 to Gate.int_argument 1 5 do
      User.write span Type.Begin;
      let start = Unix.gettimeofday () in
      run ();
      all := !all +. Unix.gettimeofday () -. start;
      User.write span Type.End
    done;
    Gate.say "%s %.0f" name (!all *. 1e9)
  in
  List.iter measure kinds;
  ignore (Sys.opaque_identity kept)
