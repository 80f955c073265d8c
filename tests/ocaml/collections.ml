(* SPDX-License-Identifier: MIT *)
(* collections [MINORS [SLICES [FULLS [DOMAINS [AT_ONCE]]]]]: between the lines "ready" and "done" runs MINORS times
   Gc.minor, SLICES times Gc.major_slice, FULLS times Gc.full_major, one Gc.compact, then the same number of minors
   in each of DOMAINS other domains, AT_ONCE at a time. Prints the counts of Gc.quick_stat at "ready" and at "done".
   *)

(* Enough to promote something, too little to trigger a collection. *)
let keep size = Sys.opaque_identity (Array.init size (fun i -> Some i))

let minors count =
  for round = 1 to count do
    let kept = keep (50 + round mod 7) in
    Gc.minor ();
    ignore (Sys.opaque_identity kept)
  done

(* The counters are those of the end of the last collection, so collect first. *)
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
  (* Larger than the minor heap allows: allocated directly in the major heap. *)
  let large = Sys.opaque_identity (Array.make 10_000 0) in
  counts "after";
  ignore (Sys.opaque_identity large);
  Gate.stop_at "done"
