(* SPDX-License-Identifier: MIT *)
(* Writes user spans as the library ocaml-trace does: by events whose payload is the name of the span. *)

open Runtime_events

type User.tag += Enter | Exit

let text =
  Type.register
    ~encode:(fun buffer name -> Bytes.blit_string name 0 buffer 0 (String.length name); String.length name)
    ~decode:(fun buffer length -> Bytes.sub_string buffer 0 length)

let enter = User.register "trace.span.enter" Enter text
let leave = User.register "trace.span.exit" Exit text

let in_span name run =
  User.write enter name;
  run ();
  User.write leave name

let () =
  for _ = 1 to Gate.int_argument 1 20 do
    in_span "request" (fun () -> in_span "parse" Gc.minor; in_span "answer" Gc.full_major)
  done
