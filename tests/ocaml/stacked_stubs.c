// SPDX-License-Identifier: MIT
#include <caml/callback.h>
#include <caml/mlvalues.h>

// With registers that it has to save, as most functions have.
static intnat spin(intnat rounds) {
  volatile intnat sum = 0;
  for (intnat i = 0; i < rounds; ++i) sum += i;
  return sum;
}

value stacked_spin(value rounds) {
  return Val_long(spin(Long_val(rounds)) & 0xff);
}

intnat stacked_spin_noalloc(intnat rounds) {
  return spin(rounds) & 0xff;
}

value stacked_call_back(value work) {
  return caml_callback(work, Val_unit);
}
