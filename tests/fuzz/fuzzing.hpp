// SPDX-License-Identifier: MIT
// Shared by the fuzz targets: files with the input's bytes, and a custom mutator.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/unique_fd.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t capacity);

namespace rtev::fuzz {

/// A file in memory with these bytes.
inline UniqueFd file_of(std::span<const std::uint8_t> bytes) {
  UniqueFd fd(::memfd_create("fuzz", MFD_CLOEXEC));
  if (!fd || ::pwrite(fd.get(), bytes.data(), bytes.size(), 0) != std::ssize(bytes)) std::abort();
  return fd;
}

/// Mutates like libFuzzer, but replaces the empty input at the start of a run with a well-formed one.
inline std::size_t mutate(std::span<const std::byte> seed, std::uint8_t* data, std::size_t size, std::size_t capacity) {
  constexpr std::size_t next_to_nothing = 4;
  if (size > next_to_nothing || seed.size() > capacity) return LLVMFuzzerMutate(data, size, capacity);
  std::ranges::copy(seed, reinterpret_cast<std::byte*>(data));
  return seed.size();
}

}  // namespace rtev::fuzz
