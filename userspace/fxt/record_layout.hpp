// SPDX-License-Identifier: MIT
// Types and headers of FXT records, for the writer and the reader.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rtev/fxt.hpp"

namespace rtev::fxt {

enum class RecordType : std::uint8_t {
  metadata = 0,
  initialization = 1,
  string = 2,
  thread = 3,
  event = 4,
  userspace_object = 6,
  kernel_object = 7,
  scheduling = 8,
  large = 15,  ///< the only type whose size field has 32 bits
};

enum class MetadataType : std::uint8_t { provider_info = 1, provider_section = 2, provider_event = 3, trace_info = 4 };

enum class SchedulingType : std::uint8_t { context_switch = 1, wakeup = 2 };

constexpr std::uint64_t record_header(RecordType type, std::size_t words) {
  return static_cast<std::uint64_t>(type) | std::uint64_t{words} << 4;
}

constexpr std::uint64_t metadata_header(MetadataType type, std::size_t words, std::uint32_t provider) {
  return record_header(RecordType::metadata, words) | static_cast<std::uint64_t>(type) << 16 |
         std::uint64_t{provider} << 20;
}

constexpr std::uint64_t argument_header(ArgumentType type, std::size_t words, std::uint64_t name_bits) {
  return static_cast<std::uint64_t>(type) | std::uint64_t{words} << 4 | name_bits << 16;
}

/// `count` bits of a word from bit `first` on.
constexpr std::uint64_t bits(std::uint64_t word, unsigned first, unsigned count) {
  return word >> first & (~std::uint64_t{0} >> (64 - count));
}

}  // namespace rtev::fxt
