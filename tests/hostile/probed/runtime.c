// SPDX-License-Identifier: MIT
// Functions with names of OCaml's runtime, by which the tracer takes a program for one of OCaml and probes it.

void caml_runtime_events_init(void) {
  __asm__ volatile("");
}

void caml_runtime_events_destroy(void) {
  __asm__ volatile("");
}

void stw_teardown_runtime_events(void) {
  __asm__ volatile("");
}
