// SPDX-License-Identifier: MIT
#include "enable/process_status.hpp"

#include <algorithm>
#include <string_view>

#include "base/parse.hpp"

namespace rtev::enable {
namespace {

/// The next word as a number, 0 if it is none. Words end with blanks or tabs.
template <typename Number>
Number take_number(std::string_view& line, int base = 10) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return parse_number<Number>(word, base).value_or(Number{});
}

std::uint64_t limit_of(std::string_view line, std::string_view name) {
  line.remove_prefix(name.size());
  const std::string_view rest = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  return parse_leading_number<std::uint64_t>(rest).value_or(UINT64_MAX);
}

}  // namespace

std::optional<ProcessStatus> parse_status(std::string_view text) {
  ProcessStatus status;
  int needed = 4;
  if (!text.ends_with('\n')) return std::nullopt;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view key = line.substr(0, line.find(':'));
    line.remove_prefix(std::min(line.size(), key.size() + 1));
    if (key == "NSpid" || key == "Uid" || key == "Gid" || key == "CapEff") --needed;
    if (key == "NSpid") {
      while (const auto number = take_number<std::int32_t>(line)) status.ns_pid = number;
    } else if (key == "Uid") {
      for (std::uint32_t& id : status.user_ids) id = take_number<std::uint32_t>(line);
    } else if (key == "Gid") {
      for (std::uint32_t& id : status.group_ids) id = take_number<std::uint32_t>(line);
    } else if (key == "Groups") {
      while (line.find_first_not_of(" \t") != std::string_view::npos) status.groups.push_back(take_number<gid_t>(line));
    } else if (key == "CapEff") {
      status.capabilities = take_number<std::uint64_t>(line, 16);
    } else if (key == "CapPrm") {
      status.permitted_capabilities = take_number<std::uint64_t>(line, 16);
    } else if (key == "TracerPid") {
      status.tracer_pid = take_number<std::int32_t>(line);
    } else if (key == "Seccomp") {
      status.seccomp = take_number<int>(line);
    } else if (key == "VmSize") {
      status.memory_bytes = take_number<std::uint64_t>(line) << 10;
    } else if (key == "Threads") {
      status.threads = take_number<std::uint64_t>(line);
    }
  }
  return needed == 0 ? std::optional(std::move(status)) : std::nullopt;
}

ProcessLimits parse_limits(std::string_view text) {
  ProcessLimits limits;
  const auto take = [](std::string_view line, std::string_view name, std::uint64_t& limit) {
    if (line.starts_with(name)) limit = limit_of(line, name);
  };
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    take(line, "Max file size", limits.file_bytes);
    take(line, "Max address space", limits.address_space);
    take(line, "Max open files", limits.open_files);
  }
  return limits;
}

std::optional<std::string> variable_in(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::string_view entry = take_until(environment, '\0');
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('='))
      return std::string(entry.substr(name.size() + 1));
  }
  return std::nullopt;
}

}  // namespace rtev::enable
