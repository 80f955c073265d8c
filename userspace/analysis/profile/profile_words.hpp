// SPDX-License-Identifier: MIT
// Parts of sentences and tables of `profile` and `allocs`.
#pragma once

#include <cstddef>
#include <string>

#include "analysis/profile/profile_report.hpp"
#include "analysis/report_text.hpp"

namespace rtev {

/// "upload.ml:42", "libc.so.6", or nothing.
struct SourceLine {
  const CallTree& tree;
  CallTree::Index place;
};
/// "Upload.store upload.ml:42", "memcpy (libc.so.6)".
struct PlaceName {
  const CallTree& tree;
  CallTree::Index place;
  std::size_t width = 60;    ///< of the function
  bool with_binary = false;  ///< also " of one/main.exe", where there is another one that looks the same
};
/// "1.23s", "34.5 MB", "12 samples".
struct Weight {
  WeightUnit unit;
  std::uint64_t weight;
};

void append(TextBuffer& out, const SourceLine& line);
void append(TextBuffer& out, const PlaceName& name);
void append(TextBuffer& out, const Weight& weight);

/// " of one/main.exe", of a function that looks like one of another file.
void add_binary(TextBuffer& out, const CallTree& tree, CallTree::Index place);
/// "upload.ml:42" in a table, with what add_binary() adds.
std::string place_cell(const CallTree& tree, CallTree::Index place, std::size_t width);

/// The name of a function in a table: without its middle if it is long.
std::string function_cell(const CallTree& tree, CallTree::Index place, std::size_t width);

/// "only 3 samples, too few for shares: 2 of them ". Where follows.
void add_few(TextBuffer& out, const ProfileReport& report);
/// Sentences that say what the figures rest on, and what is missing: lines, or nothing.
void add_sample_notes(TextBuffer& out, const ProfileReport& report);
/// Instead of a report without samples: why there are none.
void add_no_samples(TextBuffer& out, const ProfileReport& report);

/// "in Stdlib.Digest.string (caml_md5_string), called from Upload.store upload.ml:42".
std::string where_hottest(const ProfileReport& report);

/// The path on which most samples are, outermost frame first, in at most `max_lines` lines.
void add_hottest_path(TextBuffer& out, const ProfileReport& report, std::size_t max_lines);
/// How many lines the path may have, so that the report and `reserved` lines fit a terminal.
std::size_t lines_for_path(const TextBuffer& report, std::size_t reserved);
/// Caller over callee, without branches below 1 %. Its length is bounded.
void add_call_tree(TextBuffer& out, const ProfileReport& report);

}  // namespace rtev
