// SPDX-License-Identifier: MIT
// The records that FxtReader yields, as lines of text, which outlive the reader's views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "rtev/fxt_reader.hpp"

namespace rtev::test {

using TraceWords = std::vector<std::uint64_t>;

/// All fields of a record. Strings are quoted, a thread is pid/tid; either is followed by #slot, or by ! if it is
/// inline.
///   event duration begin t=5 thread=100/101#1 category="gc"#1 name="minor"! ("n"#3 int32 -7) extra=0
enum class Refs { shown, hidden };
std::string show(const fxt::Record& record, Refs refs = Refs::shown);

struct Reading {
  std::vector<std::string> records;
  std::vector<std::uint64_t> offsets;  ///< of the records
  std::string error;                   ///< Error::message() of feed() or finish()
  FxtReader::End end;

  bool operator==(const Reading& other) const {
    return records == other.records && offsets == other.offsets && error == other.error &&
           end.offset == other.end.offset && end.bytes_left == other.end.bytes_left;
  }
};

/// Feeds a trace in pieces of this size. Each lies in memory that is freed before the next one is fed.
Reading read_trace(std::span<const std::byte> trace, std::size_t piece = SIZE_MAX);

/// The bytes of words as they lie in a file.
std::vector<std::byte> file_bytes(const TraceWords& words);

/// The magic number, strings 1 "gc", 2 "minor" and 3 "n", and thread 1 as pid 100, tid 101: 80 bytes, 4 records.
TraceWords prelude();
inline constexpr std::uint64_t prelude_bytes = 80;
/// The prelude followed by these words.
TraceWords after_prelude(std::initializer_list<std::uint64_t> words);

/// `text`, up to 8 bytes, as the word of a stream.
std::uint64_t stream_word(std::string_view text);

}  // namespace rtev::test
