(* SPDX-License-Identifier: MIT *)
(* The user events of the test programs. A separate module, linked with the oracle too: OCaml's reader drops custom
   events whose type is not registered in its own process. *)

open Runtime_events

type User.tag += Tag

let bytes_type =
  Type.register
    ~encode:(fun buffer bytes -> Bytes.blit bytes 0 buffer 0 (Bytes.length bytes); Bytes.length bytes)
    ~decode:(fun buffer length -> Bytes.sub buffer 0 length)

let plain = User.register "plain" Tag Type.unit
let quoted = User.register "say \"hi\" \\ done" Tag Type.unit
let control = User.register "esc\027[31mred\nline\ttab\007" Tag Type.unit
let greek = User.register "αβγ – 事件" Tag Type.unit
let ill_formed = User.register "ill-\xff\xc0formed" Tag Type.unit
let number = User.register "number" Tag Type.int
let request = User.register "request" Tag Type.span
let nested = User.register "nested" Tag Type.span
let blob = User.register "blob" Tag bytes_type
