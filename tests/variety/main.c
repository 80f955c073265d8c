/* SPDX-License-Identifier: MIT */
/* A C program with OCaml in it. */
#include <caml/callback.h>

int main(int count, char** arguments) {
  (void)count;
  caml_startup(arguments);
  caml_shutdown();
  return 0;
}
