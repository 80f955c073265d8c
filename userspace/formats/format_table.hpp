// SPDX-License-Identifier: MIT
// The formats that a stream can be written in: their names, suffixes of files and makers, in one table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "formats/output/output.hpp"
#include "rtev/error.hpp"
#include "stream/sink.hpp"
#include "stream/thread_selection.hpp"

namespace rtev {

enum class Format : std::uint8_t { brief, text, jsonl, fxt, chrome, pftrace, csv };

struct SinkOptions {
  /// How long a sink may hold events back to write larger pieces, in ns; 0: flush() writes at once.
  std::uint64_t max_held_ns = 0;
  bool color = false;       ///< brief and text: with the colours of a terminal
  std::size_t columns = 0;  ///< brief: of the terminal; 0: lines are not cut
  /// brief and text: shorter pauses and spans have no lines. 0: brief has its own limits, text has lines for all.
  std::uint64_t min_ns = 0;
  ThreadSelection threads{};  ///< brief
  std::string label{};        ///< csv and jsonl: a word of the user for the whole run
  bool all_frames = false;    ///< text: all functions of a stack, not only the innermost one of OCaml
};

struct FormatInfo {
  Format format;
  std::string_view name;                       ///< value of -f
  std::span<const std::string_view> suffixes;  ///< of file names, without ".gz"; the first is the usual one
  std::string_view purpose;                    ///< for --help
  std::string_view hint;                       ///< what to do with a file that was written
  bool is_binary;                              ///< not for terminals
  bool has_stacks;                             ///< or leaves out that any are left out: brief
  std::unique_ptr<Sink> (*make)(Output&, const SinkOptions&);
};

/// All formats, in the order of their enumeration.
std::span<const FormatInfo> all_formats();
const FormatInfo& info_of(Format format);

/// By the suffix of a file's name, before a ".gz" or not; `otherwise` for a name without one. Fails on a suffix that no
/// format has.
Result<Format> format_of_file(const std::string& path, Format otherwise);

/// The name of an older file of a series: "dir/trace.fxt.gz" and 2 give "dir/trace.2.fxt.gz".
std::string numbered_name(const std::string& path, std::size_t number);

}  // namespace rtev
