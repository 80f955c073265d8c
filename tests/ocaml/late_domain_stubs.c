// SPDX-License-Identifier: MIT
#include <caml/mlvalues.h>
#include <errno.h>
#include <time.h>

// As bindings do that forget to release the runtime around a system call.
value late_domain_sleep(value ms) {
  struct timespec left = {.tv_sec = Long_val(ms) / 1000, .tv_nsec = Long_val(ms) % 1000 * 1000000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  return Val_unit;
}
