// SPDX-License-Identifier: MIT
// A writer into memory, and what it wrote since the last check. Tests write FXT words from the highest bits down, with
// a separator between the fields that a comment explains.
#pragma once

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "rtev/fxt_destination.hpp"
#include "rtev/fxt_writer.hpp"

namespace rtev::fxt {

using TraceWords = std::vector<std::uint64_t>;
using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr;

/// Few slots, so that slots of all kinds have small numbers.
inline FxtWriter::Options few_slots() {
  return {.provider_id = 7, .provider_name = "me", .fixed_strings = 2, .fixed_threads = 1, .temporary_strings = 2};
}
inline constexpr std::uint16_t first_interned = 5;
inline constexpr std::uint8_t first_thread = 2;

/// Time of events and records.
inline constexpr std::uint64_t timestamp = 0x0102030405060708;

class WrittenTrace {
 public:
  explicit WrittenTrace(const FxtWriter::Options& options = few_slots()) : writer(memory_, options) { news(); }

  /// Words written since the last call, without the magic number and the provider.
  TraceWords news() {
    writer.flush();
    const auto all = memory_.words();
    const TraceWords fresh(all.begin() + static_cast<std::ptrdiff_t>(seen_), all.end());
    seen_ = all.size();
    return fresh;
  }
  std::string_view why() const { return writer.error() ? std::string_view(writer.error()->why) : ""; }

 private:
  FxtMemory memory_;
  std::size_t seen_ = 0;

 public:
  FxtWriter writer;
};

/// Sizes of the records in these words, which must be whole records.
inline std::vector<std::size_t> record_sizes(std::span<const std::uint64_t> words) {
  std::vector<std::size_t> sizes;
  while (!words.empty()) {
    const std::size_t size = words.front() >> 4 & 0xfff;
    if (size == 0 || size > words.size()) {
      ADD_FAILURE() << "a record of " << size << " words where " << words.size() << " are left";
      break;
    }
    sizes.push_back(size);
    words = words.subspan(size);
  }
  return sizes;
}

}  // namespace rtev::fxt
