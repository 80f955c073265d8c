// SPDX-License-Identifier: MIT
// Any bytes as an ELF file, inspected for OCaml's runtime.
#include "fuzz/fuzzing.hpp"
#include "inspect/binary.hpp"

namespace rtev::fuzz {

void elf(Bytes input) {
  static const UniqueFd file = file_of({});
  resize(file, 0);
  check(::pwrite(file.get(), input.data(), input.size(), 0) == std::ssize(input), "pwrite");
  static_cast<void>(inspect_binary(file.get()));
}

}  // namespace rtev::fuzz
