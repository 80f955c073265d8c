// SPDX-License-Identifier: MIT
#include "inspect/proc_lines.hpp"

#include <sys/sysmacros.h>

#include <algorithm>
#include <array>

#include "base/parse.hpp"
#include "base/program_names.hpp"
#include "inspect/binary.hpp"

namespace rtev {
namespace {

bool drop_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

/// Undoes the kernel's escapes of blanks and backslashes: three octal digits.
std::string unescape(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto digits = text.substr(at).starts_with('\\') ? text.substr(at + 1, 3) : std::string_view{};
    const auto code = digits.size() == 3 ? parse_number<unsigned char>(digits, 8) : std::nullopt;
    plain.push_back(code ? static_cast<char>(*code) : text[at]);
    if (code) at += digits.size();
  }
  return plain;
}

/// OCaml's own plugins are libraries, too.
bool is_library_name(std::string_view name) {
  return name.ends_with(".so") || name.contains(".so.") || name.ends_with(".cmxs");
}

}  // namespace

std::optional<ProcessStat> parse_stat(std::string_view text) {
  // "PID (COMM) STATE PARENT ...": the process chooses COMM, but only numbers follow it.
  const auto open = text.find(" ("), close = text.rfind(") ");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open + 2) return std::nullopt;
  const std::string_view comm = text.substr(open + 2, close - open - 2);
  text.remove_prefix(close + 2);
  const std::string_view state = take_word(text);
  // By the number of the field; the state is the third.
  constexpr std::size_t parent_field = 4, flags_field = 9, user_field = 14, system_field = 15, threads_field = 20,
                        start_field = 22, memory_field = 24, code_field = 26, environment_end_field = 51;
  std::array<std::int64_t, start_field + 1> fields{};
  for (std::size_t field = 4; field <= start_field; ++field) {
    const auto number = parse_number<std::int64_t>(take_word(text));
    if (!number) return std::nullopt;
    fields[field] = *number;
  }
  // A number that the text ends in may have been cut off.
  if (state.size() != 1 || text.empty()) return std::nullopt;
  std::uint64_t memory_pages = 0;
  for (std::size_t field = start_field + 1; field < code_field; ++field) {
    const auto number = parse_number<std::uint64_t>(take_word(text));
    if (field == memory_field) memory_pages = number.value_or(0);
  }
  const auto start_code = parse_number<std::uint64_t>(take_word(text)).value_or(0);
  const bool is_code_whole = !text.empty();
  for (std::size_t field = code_field + 1; field < environment_end_field; ++field) take_word(text);
  const auto environment_end = parse_number<std::uint64_t>(take_word(text)).value_or(0);
  constexpr std::uint64_t not_permitted = 1;                       // what the kernel says to those who may not know
  constexpr std::int64_t pf_exiting = 0x4, pf_kthread = 0x200000;  // the kernel's names for them
  return ProcessStat{.comm = std::string(comm),
                     .state = state.front(),
                     .parent = static_cast<std::int32_t>(fields[parent_field]),
                     .kernel_thread = (fields[flags_field] & pf_kthread) != 0,
                     .ending = (fields[flags_field] & pf_exiting) != 0,
                     .threads = static_cast<std::uint64_t>(fields[threads_field]),
                     .start_code = !is_code_whole || start_code == not_permitted ? 0 : start_code,
                     .start_ticks = static_cast<std::uint64_t>(fields[start_field]),
                     .cpu_ticks = static_cast<std::uint64_t>(fields[user_field] + fields[system_field]),
                     .memory_pages = memory_pages,
                     .environment_end = environment_end};
}

std::optional<Mapping> parse_mapping(std::string_view line) {
  // "BEGIN-END PERMS OFFSET MAJOR:MINOR INODE", then blanks and a path where there is one, which may hold blanks.
  const auto begin = parse_number<std::uint64_t>(take_until(line, '-'), 16);
  const auto end = parse_number<std::uint64_t>(take_until(line, ' '), 16);
  const auto permissions = take_until(line, ' ');
  const auto offset = parse_number<std::uint64_t>(take_until(line, ' '), 16);
  const auto major = parse_number<unsigned>(take_until(line, ':'), 16);
  const auto minor = parse_number<unsigned>(take_until(line, ' '), 16);
  const auto inode = parse_number<std::uint64_t>(take_until(line, ' '));
  if (!begin || !end || *begin >= *end || !offset || !major || !minor || !inode) return std::nullopt;

  constexpr std::array<std::string_view, 4> allowed{"r-", "w-", "x-", "ps"};
  if (permissions.size() != allowed.size()) return std::nullopt;
  for (std::size_t i = 0; i < allowed.size(); ++i)
    if (!allowed[i].contains(permissions[i])) return std::nullopt;

  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const bool deleted = drop_suffix(line, " (deleted)");
  return Mapping{.begin = *begin,
                 .end = *end,
                 .offset = *offset,
                 .permissions = std::string{permissions},
                 .device = makedev(*major, *minor),
                 .inode = *inode,
                 .path = std::string{line},
                 .deleted = deleted};
}

std::optional<Mount> parse_mount(std::string_view line) {
  // "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE SOURCE OPTIONS"
  const auto id = parse_number<std::int64_t>(take_until(line, ' '));
  take_until(line, ' ');
  const auto major = parse_number<unsigned>(take_until(line, ':'));
  const auto minor = parse_number<unsigned>(take_until(line, ' '));
  const auto root = take_until(line, ' ');
  const auto point = take_until(line, ' ');
  take_until(line, ' ');
  while (line.contains(' ') && !line.starts_with("- ")) take_until(line, ' ');
  const auto dash = take_until(line, ' ');
  const auto type = take_until(line, ' ');
  if (!id || !major || !minor || root.empty() || point.empty() || dash != "-" || type.empty()) return std::nullopt;
  return Mount{.id = *id,
               .device = makedev(*major, *minor),
               .root = unescape(root),
               .point = unescape(point),
               .type = std::string{type}};
}

bool is_ring_path(std::string_view path) {
  std::string_view name = file_name_of(path);
  return drop_suffix(name, ".events") && !name.empty() &&
         std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<std::int32_t> ring_number(std::string_view path) {
  return is_ring_path(path) ? parse_leading_number<std::int32_t>(file_name_of(path)) : std::nullopt;
}

bool is_ring_mapping(const Mapping& mapping) {
  return mapping.permissions.size() == 4 && mapping.permissions[1] == 'w' && mapping.permissions[3] == 's' &&
         is_ring_path(mapping.path);
}

bool is_runtime_library(const Mapping& mapping) {
  return is_runtime_library_path(mapping.path);
}

bool is_loaded_program(const Mapping& mapping) {
  return mapping.permissions.size() == 4 && mapping.permissions[2] == 'x' && mapping.path.starts_with('/') &&
         !is_library_name(file_name_of(mapping.path));
}

}  // namespace rtev
