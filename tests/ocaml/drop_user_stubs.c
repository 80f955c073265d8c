// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <caml/fail.h>
#include <caml/mlvalues.h>
#include <sched.h>

value drop_user_unshare_mounts(value unit) {
  if (unshare(CLONE_NEWNS) != 0) caml_failwith("cannot leave the mount namespace");
  return unit;
}
