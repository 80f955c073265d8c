(* SPDX-License-Identifier: MIT *)
(* headless [late]: its main thread ends while another domain continues. That domain writes a hundred steps, waits,
   with "late" starts events only now, writes a hundred more, waits and exits with status 5. *)

external end_this_thread : unit -> unit = "headless_end_this_thread"

let is_late = Array.length Sys.argv > 1

(* The state letter after the name, which is in parentheses. *)
let main_thread_has_ended () =
  let line = In_channel.with_open_bin "/proc/self/stat" input_line in
  line.[String.rindex line ')' + 2] = 'Z'

let go_on () =
  while not (main_thread_has_ended ()) do
    Unix.sleepf 0.001
  done;
  Counting.write 100;
  Gate.stop_at "ready";
  if is_late then Runtime_events.start ();
  Counting.write ~first:101 100;
  Gate.churn 3;
  Gate.stop_at "done";
  Unix._exit 5

let () =
  ignore (Domain.spawn go_on);
  end_this_thread ()
