(* SPDX-License-Identifier: MIT *)
(* growing [MILLISECONDS]: allocates about 16 MB a second for that time, and keeps it. *)

let () =
  let until = Unix.gettimeofday () +. (float (Gate.int_argument 1 1_200) /. 1e3) in
  let kept = ref [] in
  while Unix.gettimeofday () < until do
    kept := Array.make 2_000 0 :: !kept;
    ignore (Gc.major_slice 0);
    Unix.sleepf 0.001
  done;
  ignore (Sys.opaque_identity !kept)
