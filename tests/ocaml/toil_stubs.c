// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <caml/mlvalues.h>
#include <sched.h>

// Binds the calling thread to a cpu.
value toil_run_on(value cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(Int_val(cpu), &cpus);
  sched_setaffinity(0, sizeof cpus, &cpus);
  return Val_unit;
}
