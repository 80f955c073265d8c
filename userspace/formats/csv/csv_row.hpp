// SPDX-License-Identifier: MIT
// One row of the CSV format: its columns, and how they are encoded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text_buffer.hpp"
#include "rtev/event.hpp"
#include "stream/sink.hpp"
#include "stream/thread_interval.hpp"

namespace rtev {

/// Which process image a row is about. Texts as the process made them, valid while the row is written.
struct CsvProcess {
  std::int32_t pid = 0;                                           ///< 0: none
  std::uint64_t start_ticks = 0;                                  ///< ProcessInfo::start_ticks
  std::string_view comm{}, exe{}, service{}, version{}, ocaml{};  ///< service, version: see ServiceIdentity
};

/// Numbers beyond INT64_MAX are written as INT64_MAX: databases refuse greater ones. What is unknown is empty.
struct CsvRow {
  std::string_view kind{};
  std::uint64_t begin_ns = 0;  ///< CLOCK_MONOTONIC
  std::optional<std::uint64_t> duration_ns = 0;
  CsvProcess process{};
  std::int32_t domain = -1;  ///< -1: none, or unknown
  std::string_view name{};   ///< any bytes
  std::optional<std::int64_t> value = 0;
  std::string_view unit{};   ///< of the value
  std::string_view state{};  ///< how it ended
  /// Of the duration; what is unknown is in no column.
  std::optional<TimeSplit> time = TimeSplit{};
};

/// The greatest number that a column holds, at most.
constexpr std::int64_t csv_number(std::uint64_t number) {
  return number > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(number);
}

/// Appends a field: any bytes, escaped as by add_escaped(), so that it is UTF-8 without control characters. A first
/// character that begins a formula in spreadsheets is escaped, too, also one of full width. Quoted where RFC 4180 asks
/// for it, and where readers of CSV differ: with spaces at an end, and with apostrophes.
void add_csv_field(TextBuffer& out, std::string_view text);

/// The line with the names of the columns, with its end.
std::string_view csv_titles();

/// Appends rows. What all rows of a run have in common is encoded once.
class CsvWriter {
 public:
  CsvWriter(TextBuffer& out, std::string label) : out_(out), label_(std::move(label)) {}

  /// Before the first row.
  void set_run(const RunHeader& header);
  void add(const CsvRow& row);

 private:
  TextBuffer& out_;
  std::string label_;
  std::string run_;              ///< the columns of the run, with commas around them
  std::uint64_t offset_ns_ = 0;  ///< from CLOCK_MONOTONIC to the column of times, modulo 2^64
};

}  // namespace rtev
