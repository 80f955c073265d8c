/* SPDX-License-Identifier: MIT */
#include <caml/mlvalues.h>
#include <caml/signals.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The runtime is told that this thread is away for long, so that the other domains do not wait for it. */
value headless_end_this_thread(value unit) {
  caml_enter_blocking_section();
  syscall(SYS_exit, 0);
  return unit;
}
