(* SPDX-License-Identifier: MIT *)
(* collections [MINORS [SLICES [FULLS [DOMAINS [AT_ONCE]]]]]: collects that often where it says so, between the lines
   "ready" and "done": MINORS by Gc.minor, SLICES by Gc.major_slice, FULLS by Gc.full_major, one Gc.compact; then the same
   minors in DOMAINS other domains, AT_ONCE at a time. What Gc.quick_stat counted at "ready" and at "done" goes to
   stdout. *)

(* Enough to be promoted, little enough that no collection comes by itself. *)
let keep size = Sys.opaque_identity (Array.init size (fun i -> Some i))

let minors count =
  for round = 1 to count do
    let kept = keep (50 + round mod 7) in
    Gc.minor ();
    ignore (Sys.opaque_identity kept)
  done

(* The counters are those at the end of the last collection, which this makes that of now. *)
let counts name =
  Gc.minor ();
  let stat = Gc.quick_stat () in
  Gate.say "%s minor=%d major=%d compactions=%d forced=%d minor_words=%.0f promoted_words=%.0f major_words=%.0f"
    name stat.minor_collections stat.major_collections stat.compactions stat.forced_major_collections
    stat.minor_words stat.promoted_words stat.major_words

let rec in_domains work left at_once =
  if left > 0 then begin
    List.iter Domain.join (List.init (min left at_once) (fun _ -> Domain.spawn work));
    in_domains work (left - at_once) at_once
  end

let () =
  let minor_count = Gate.int_argument 1 20 and slices = Gate.int_argument 2 5 in
  let fulls = Gate.int_argument 3 2 and domains = Gate.int_argument 4 0 and at_once = Gate.int_argument 5 1 in
  Gate.stop_at "ready";
  counts "before";
  minors minor_count;
  for _ = 1 to slices do
    ignore (Gc.major_slice 1000)
  done;
  for _ = 1 to fulls do
    Gc.full_major ()
  done;
  Gc.compact ();
  in_domains (fun () -> minors minor_count) domains at_once;
  (* Larger than what fits into the minor heap: straight to the major one. *)
  let large = Sys.opaque_identity (Array.make 10_000 0) in
  counts "after";
  ignore (Sys.opaque_identity large);
  Gate.stop_at "done"
