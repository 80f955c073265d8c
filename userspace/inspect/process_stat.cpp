// SPDX-License-Identifier: MIT
#include "inspect/process_stat.hpp"

#include <string_view>

#include "base/parse.hpp"
#include "base/small_file.hpp"
#include "inspect/proc_text.hpp"

namespace rtev {

std::optional<ProcessStat> read_stat(const std::filesystem::path& path) {
  constexpr std::size_t max_bytes = 4096;
  const auto text = read_small_file(path, max_bytes);
  if (!text) return std::nullopt;
  // "PID (COMM) STATE PARENT ...": the process chooses COMM, but only numbers follow it.
  const auto open = text->find(" ("), close = text->rfind(") ");
  if (open == std::string::npos || close == std::string::npos || close < open + 2) return std::nullopt;

  ProcessStat stat;
  stat.comm = text->substr(open + 2, close - open - 2);
  std::string_view rest = std::string_view{*text}.substr(close + 2);
  const auto state = take_word(rest);
  const auto parent = parse_number<std::int32_t>(take_word(rest));
  const auto skip = [&](int fields) {
    while (fields-- > 0) take_word(rest);
  };
  constexpr int parent_field = 4, flags_field = 9, threads_field = 20, start_field = 22;
  skip(flags_field - parent_field - 1);
  const auto flags = parse_number<std::uint64_t>(take_word(rest));
  skip(threads_field - flags_field - 1);
  const auto threads = parse_number<std::uint64_t>(take_word(rest));
  skip(start_field - threads_field - 1);
  const auto start = parse_number<std::uint64_t>(take_word(rest));
  if (state.size() != 1 || !parent || !flags || !threads || !start) return std::nullopt;
  // A number that the text ends in may have been cut off.
  if (rest.empty()) return std::nullopt;
  constexpr std::uint64_t pf_exiting = 0x4, pf_kthread = 0x200000;  // the kernel's names for them
  stat.state = state.front();
  stat.parent = *parent;
  stat.kernel_thread = (*flags & pf_kthread) != 0;
  stat.ending = (*flags & pf_exiting) != 0;
  stat.threads = *threads;
  stat.start_ticks = *start;
  return stat;
}

}  // namespace rtev
