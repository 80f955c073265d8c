// SPDX-License-Identifier: MIT
// Connects the target RTEV_FUZZ_TARGET to libFuzzer.
#include "fuzz/fuzzing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rtev::fuzz::RTEV_FUZZ_TARGET({data, size});
  return 0;
}
