(* SPDX-License-Identifier: MIT *)
(* memory MIB...: fills as many MiB of memory as the first number says, collects garbage, and execs itself with the
   remaining numbers; exits if there is none. *)

let () =
  let mib = Gate.int_argument 1 1 in
  let held = Bytes.create (mib * 1024 * 1024) in
  Bytes.fill held 0 (Bytes.length held) 'x';
  Gc.full_major ();
  ignore (Sys.opaque_identity held);
  if Array.length Sys.argv > 2 then begin
    let arguments = Array.sub Sys.argv 1 (Array.length Sys.argv - 1) in
    arguments.(0) <- Sys.argv.(0);
    Unix.execv Sys.executable_name arguments
  end
