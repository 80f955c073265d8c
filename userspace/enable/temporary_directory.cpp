// SPDX-License-Identifier: MIT
#include "enable/temporary_directory.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "inspect/procfs.hpp"

namespace rtev::enable {
namespace {

constexpr std::string_view c_library = "/libc.so.6";

/// What is searched of one mapping, and of all.
constexpr std::size_t max_mapping_bytes = 4 << 20, max_bytes = 16 << 20;

}  // namespace

std::uint64_t find_temporary_directory(const Target& target) {
  const std::string text = '\0' + std::string(temporary_directory) + '\0';
  std::uint64_t found = 0;
  std::size_t searched = 0;
  Procfs().visit_mappings(target.process.pid(), [&](const Mapping& mapping) {
    const bool is_program = mapping.inode == target.code.inode && mapping.device == target.code.device;
    const bool is_constant = mapping.permissions == "r--p" && mapping.inode != 0 && !mapping.deleted &&
                             (is_program || mapping.path.ends_with(c_library));
    if (!is_constant) return true;
    const std::string bytes =
        target.memory().bytes(mapping.begin, std::min<std::uint64_t>(mapping.end - mapping.begin, max_mapping_bytes));
    if (const std::size_t at = bytes.find(text); at != std::string::npos) found = mapping.begin + at + 1;
    searched += bytes.size();
    return found == 0 && searched < max_bytes;
  });
  return found;
}

}  // namespace rtev::enable
