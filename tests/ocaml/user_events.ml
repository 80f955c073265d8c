(* SPDX-License-Identifier: MIT *)
(* Writes every type of user event, with minimum and maximum values. *)

open Runtime_events

let () =
  Gate.stop_at "ready";
  List.iter (fun event -> User.write event ()) Vocabulary.[ plain; quoted; control; greek; ill_formed ];
  List.iter (User.write Vocabulary.number) [ 0; 1; -1; 42; 0x7fffffff; -0x80000000 ];
  User.write Vocabulary.request Type.Begin;
  User.write Vocabulary.nested Type.Begin;
  Gc.minor ();
  User.write Vocabulary.nested Type.End;
  User.write Vocabulary.request Type.End;
  List.iter
    (fun length -> User.write Vocabulary.blob (Bytes.init length (fun i -> Char.chr (i land 255))))
    [ 0; 1; 7; 8; 9; 255; 1023; 1024 ];
  Gate.stop_at "written"
