// SPDX-License-Identifier: MIT
// Records of any shape: first how large one becomes and whether it may be written, then its words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "rtev/fxt_encode.hpp"
#include "rtev/fxt_records.hpp"
#include "rtev/fxt_writer.hpp"

namespace rtev::fxt {

constexpr std::uint64_t record_header(RecordType type, std::size_t words) {
  return static_cast<std::uint64_t>(type) | std::uint64_t{words} << 4;
}

constexpr std::uint64_t argument_header(ArgumentType type, std::size_t words, std::uint64_t name_bits) {
  return static_cast<std::uint64_t>(type) | std::uint64_t{words} << 4 | name_bits << 16;
}

constexpr std::uint64_t event_header(EventType type, std::size_t words, std::size_t arguments, ThreadRef thread,
                                     std::uint64_t category_bits, std::uint64_t name_bits) {
  return record_header(RecordType::event, words) | static_cast<std::uint64_t>(type) << 16 |
         std::uint64_t{arguments} << 20 | std::uint64_t{thread.bits} << 24 | category_bits << 32 | name_bits << 48;
}

/// Adds up what goes into a record and remembers the first thing that must not.
class RecordSize {
 public:
  /// Words that a record of this kind always has, header included.
  explicit RecordSize(std::size_t words) : words_(words) {}

  RecordSize& add(const Text& text);
  RecordSize& add(const Thread& thread);
  RecordSize& add(std::span<const Argument> arguments);
  /// Of a log message or a blob record.
  RecordSize& add_payload(std::size_t bytes);
  RecordSize& require(bool good, std::string_view why);

  std::size_t words() const { return words_; }
  std::size_t arguments() const { return arguments_; }
  Status status() const {
    return words_ > max_record_words && status_ == Status::written ? Status::over_limit : status_;
  }
  /// Why status() is not `written`.
  std::string_view why() const { return why_.empty() ? "a record has 4095 words at most" : why_; }

 private:
  void refuse(Status status, std::string_view why);

  std::size_t words_;
  std::size_t arguments_ = 0;
  Status status_ = Status::written;
  std::string_view why_;
};

std::uint64_t* put_text(std::uint64_t* out, const Text& text);
std::uint64_t* put_thread(std::uint64_t* out, const Thread& thread);
std::uint64_t* put_arguments(std::uint64_t* out, std::span<const Argument> arguments);

}  // namespace rtev::fxt
