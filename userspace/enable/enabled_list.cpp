// SPDX-License-Identifier: MIT
#include "enable/enabled_list.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/parse.hpp"
#include "base/unique_fd.hpp"
#include "enable/state_directory.hpp"

namespace rtev::enable {

Result<void> note_enabled(std::int32_t pid, std::uint64_t start_ticks) {
  const auto directory = open_state_directory(enabled_directory);
  if (!directory) return std::unexpected(directory.error());
  const std::string name = state_file_name(pid, start_ticks);
  const UniqueFd file(::openat(directory->get(), name.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file) return errno_error(errno, "cannot write", std::filesystem::path(enabled_directory) / name);
  return {};
}

bool was_enabled(std::int32_t pid, std::uint64_t start_ticks) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::path(enabled_directory) / state_file_name(pid, start_ticks), error);
}

void forget_ended(const Procfs& procfs) {
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(enabled_directory, error)) {
    const std::string name = file.path().filename();
    const auto pid = parse_number<std::int32_t>(name.substr(0, name.find('-')));
    const auto stat = pid ? procfs.stat(*pid) : std::nullopt;
    if (!stat || stat->ending || state_file_name(*pid, stat->start_ticks) != name) ::unlink(file.path().c_str());
  }
}

}  // namespace rtev::enable
