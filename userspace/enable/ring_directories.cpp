// SPDX-License-Identifier: MIT
#include "enable/ring_directories.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <string_view>

#include "base/parse.hpp"

namespace rtev::enable {
namespace {

/// In this order: what belongs to the user, what systemd makes for a service, and where others may watch for files.
constexpr std::array<std::string_view, 6> variables{
    "HOME", "XDG_RUNTIME_DIR", "RUNTIME_DIRECTORY", "STATE_DIRECTORY", "TMPDIR", "PWD"};

constexpr std::uint64_t max_environment_read = 1 << 17;
constexpr std::size_t max_directory_bytes = 1024, text_step = sizeof(std::uint64_t);

struct Range {
  std::uint64_t begin = 0, end = 0;
};

/// Where the kernel has put the environment: fields 50 and 51 of /proc/PID/stat.
Range environment_of(const HeldProcess& process) {
  const std::string stat = process.read("stat").value_or("");
  // The name before these fields may hold any bytes.
  std::string_view rest(stat);
  rest.remove_prefix(std::min(rest.size(), rest.rfind(')') + 1));
  take_word(rest);  // field 3
  for (int field = 4; field < 50; ++field) take_word(rest);
  const auto begin = parse_number<std::uint64_t>(take_word(rest)), end = parse_number<std::uint64_t>(take_word(rest));
  return {.begin = begin.value_or(0), .end = end.value_or(0)};
}

}  // namespace

std::vector<std::string> ring_directories(const Target& target) {
  const auto [begin, end] = environment_of(target.process);
  if (begin == 0 || end <= begin) return {};
  const std::string text = target.memory().bytes(begin, std::min(end - begin, max_environment_read));
  std::array<std::string, variables.size()> found;
  for (std::string_view rest(text); rest.contains('\0');) {
    const std::string_view entry = take_until(rest, '\0');
    const std::size_t name_bytes = std::min(entry.find('='), entry.size());
    const auto variable = std::ranges::find(variables, entry.substr(0, name_bytes));
    const std::string_view path = entry.substr(std::min(entry.size(), name_bytes + 1));
    if (variable == variables.end() || !path.starts_with('/') || path.size() > max_directory_bytes) continue;
    found.at(static_cast<std::size_t>(variable - variables.begin())) = path;
  }
  std::vector<std::string> directories;
  std::ranges::copy_if(found, std::back_inserter(directories), [](const auto& one) { return !one.empty(); });
  return directories;
}

std::size_t room_for_directory(const Target& target) {
  const auto [begin, end] = target.spare();
  return std::min<std::size_t>(end - begin, max_directory_bytes);
}

bool lead_to_directory(const Target& target, const std::string& path) {
  const ProcessMemory& memory = target.memory();
  const std::uint64_t variable = target.place(target.runtime.start_sites.directory), room = target.spare().begin;
  const auto present = memory.word(variable);
  if (!present) return false;
  // As check_requirements() saw it: no directory, or an empty name.
  constexpr std::size_t max_bytes = 1;
  if (*present != room && *present != 0 && memory.text(*present, max_bytes) != std::string()) return false;
  std::string text = path + '\0';
  text.resize((text.size() + text_step - 1) / text_step * text_step);
  if (text.size() > room_for_directory(target)) return false;
  const std::string there = memory.bytes(room, text.size());
  // Of an earlier attempt; whatever else is there is not ours.
  if (there != text) {
    if (*present == room || there != std::string(text.size(), '\0')) return false;
    for (std::size_t at = 0; at < text.size(); at += text_step) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + at, text_step);
      if (!memory.write_word(room + at, word)) return false;
    }
  }
  return memory.write_word(variable, room);
}

}  // namespace rtev::enable
