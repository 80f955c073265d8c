// SPDX-License-Identifier: MIT
// Words of perf, olly, bpftrace and the like, and what rtev-bpf has for them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rtev::cli {

/// A hint for who wrote a word that another tool has: an option ("--json", also with "=value"), a subcommand, or a
/// value of --format. `command`: how the command line begins, e.g. "rtev-bpf stats". `has_option`: whether this command
/// has an option of that long name. Nothing for other words.
std::optional<std::string> hint_for_foreign_word(std::string_view word, std::string_view command,
                                                 const std::function<bool(const std::string&)>& has_option);

}  // namespace rtev::cli
