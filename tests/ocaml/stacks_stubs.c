// SPDX-License-Identifier: MIT
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/mlvalues.h>
#include <math.h>

value stacks_call_back(value function) {
  value result = caml_callback(function, Val_unit);
  return result == Val_unit ? Val_unit : Val_int(1);
}

// Uses registers that functions must keep, so that it saves them.
value stacks_spin(value rounds) {
  unsigned long a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
  for (long i = 0; i < Long_val(rounds); ++i) {
    a += b ^ i, b += c * 3, c += d >> 1, d += e ^ a, e += f * 5, f += a + (unsigned long)sin((double)(i & 3));
  }
  return Val_long((a ^ b ^ c ^ d ^ e ^ f) & 0xffff);
}

double stacks_spin_float(double rounds) {
  double sum = 0;
  for (double i = 0; i < rounds; i += 1) sum += sin(i);
  return sum;
}
value stacks_spin_float_bytecode(value rounds) {
  return caml_copy_double(stacks_spin_float(Double_val(rounds)));
}

value stacks_checksum(value text) {
  unsigned long sum = 0;
  for (mlsize_t i = 0; i < caml_string_length(text); ++i) sum = sum * 31 + Byte_u(text, i);
  return Val_long(sum & 0xffff);
}
