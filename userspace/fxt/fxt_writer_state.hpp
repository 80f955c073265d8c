// SPDX-License-Identifier: MIT
// The state of FxtWriter besides its buffer, and the parts of records other than events.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "fxt/record_layout.hpp"
#include "fxt/writer_tables.hpp"
#include "rtev/fxt_writer.hpp"

namespace rtev::fxt {

/// Argument names that the format prescribes.
enum class KnownName : std::uint8_t { process, incoming_weight, outgoing_weight, weight, waker };
inline constexpr std::array<std::string_view, 5> known_names{"process", "incoming_weight", "outgoing_weight", "weight",
                                                             "waker"};

class WriterState {
 public:
  explicit WriterState(const FxtWriter::Options& options)
      : provider(options.provider_id),
        strings(options.fixed_strings, options.temporary_strings, options.interned_bytes),
        threads(options.fixed_threads) {}

  /// Stores argument headers until the writer ends. Events with equal headers share them.
  const std::uint64_t* keep(std::vector<std::uint64_t> argument_headers) {
    return argument_headers_.insert(std::move(argument_headers)).first->data();
  }

  std::uint32_t provider;
  StringSlots strings;
  ThreadSlots threads;
  std::array<StringRef, known_names.size()> known{};  ///< empty until used

 private:
  std::set<std::vector<std::uint64_t>> argument_headers_;
};

/// A record in the order of its words: header, fixed words, inline name, arguments.
struct RecordParts {
  std::string_view what;  ///< for messages
  RecordType type;
  std::uint64_t header_bits;  ///< besides type, size, number of arguments and name
  unsigned arguments_shift;   ///< where the header has the number of arguments
  std::span<const std::uint64_t> words;
  Text name{};  ///< in header bits 24 to 39, only of objects
  std::span<const Argument> first{}, further{};
};

}  // namespace rtev::fxt
