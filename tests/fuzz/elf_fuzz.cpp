// SPDX-License-Identifier: MIT
// Any bytes as an ELF file, inspected for OCaml's runtime.
#include <string>

#include "fuzz/fuzzing.hpp"
#include "inspect/binary.hpp"
#include "unit/inspect/runtime_shapes.hpp"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t capacity, unsigned) {
  static const std::string seed = rtev::test::write_elf(rtev::test::program(5));
  return rtev::fuzz::mutate(std::as_bytes(std::span(seed)), data, size, capacity);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const rtev::UniqueFd file = rtev::fuzz::file_of({data, size});
  static_cast<void>(rtev::inspect_binary(file.get()));
  return 0;
}
