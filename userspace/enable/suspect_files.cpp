// SPDX-License-Identifier: MIT
#include "enable/suspect_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/parse.hpp"
#include "base/state_directory.hpp"
#include "base/unique_fd.hpp"

namespace rtev::enable {
namespace {

constexpr const char* suspect_directory = "/run/rtev-bpf/suspects";

std::string name_of(const ProgramFile& file) {
  return fmt::format("{}-{}", file.first, file.second);
}

}  // namespace

std::string suspect_path(const ProgramFile& file) {
  return std::filesystem::path(suspect_directory) / name_of(file);
}

Result<void> note_suspect(const ProgramFile& file) {
  const auto directory = open_state_directory(suspect_directory);
  if (!directory) return std::unexpected(directory.error());
  const UniqueFd entry(
      ::openat(directory->get(), name_of(file).c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!entry) return errno_error(errno, "cannot write", suspect_path(file));
  return {};
}

SuspectFiles read_suspects() {
  SuspectFiles suspects;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(suspect_directory, error)) {
    const std::string name = entry.path().filename();
    const auto device = parse_leading_number<std::uint64_t>(name);
    const auto inode = parse_number<std::uint64_t>(name.substr(name.find('-') + 1));
    if (device && inode) suspects.emplace(*device, *inode);
  }
  return suspects;
}

}  // namespace rtev::enable
