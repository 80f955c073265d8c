// SPDX-License-Identifier: MIT
// Names of the files that -o names: the one where it has no name, and whether the suffix fits what is written.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format_table.hpp"
#include "rtev/error.hpp"

namespace rtev::cli {

/// Stands for the name of -o without one.
inline constexpr const char* unnamed_file = "rtev-HOST-TIME";

/// "rtev-web1-20261126-101502.fxt", by the local time; with "-2", "-3", ... before the suffix if such a file exists.
std::string default_file_name(std::string_view suffix);

/// The format of a stream's file. `asked` is that of -f; without it the suffix decides, and `otherwise` if there is
/// none. Fails on a suffix of another format than `asked`, and without `asked` on one that no format has.
Result<Format> format_of_output(const std::string& path, std::optional<Format> asked, Format otherwise);

/// True if a report's file is JSON, with the same rules. Reports are not compressed: fails on ".gz". False for a file
/// with one of the suffixes `others`, which are no reports.
Result<bool> is_json_output(const std::string& path, std::optional<bool> asked,
                            std::span<const std::string_view> others = {});

/// The suffixes of files that streams and reports are written to.
std::vector<std::string> stream_suffixes();
std::vector<std::string> report_suffixes(std::span<const std::string_view> others);

}  // namespace rtev::cli
