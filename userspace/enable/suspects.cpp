// SPDX-License-Identifier: MIT
#include "enable/suspects.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/parse.hpp"
#include "base/state_directory.hpp"
#include "base/unique_fd.hpp"

namespace rtev::enable {
namespace {

constexpr const char* suspect_directory = "/run/rtev-bpf/suspects";

std::string name_of(const UsersProgram& suspect) {
  return fmt::format("{}-{}-{}", suspect.file.first, suspect.file.second, suspect.user);
}

}  // namespace

bool Suspects::insert(const UsersProgram& program) {
  if (is_full(program.user) || number_of(program.user) >= max_of_root) return false;
  return programs_.insert(program).second;
}

bool Suspects::is_full(std::uint32_t user) const {
  // Not root: containers without a user namespace have the host's root, and would bar root's programs on the host.
  return user != 0 && number_of(user) >= max_of_user;
}

std::size_t Suspects::number_of(std::uint32_t user) const {
  return static_cast<std::size_t>(std::ranges::count(programs_, user, &UsersProgram::user));
}

std::string Suspects::entry_of(const UsersProgram& program) const {
  return std::filesystem::path(suspect_directory) /
         (is_full(program.user) ? fmt::format("*-{}", program.user) : name_of(program));
}

Result<void> note_suspect(const UsersProgram& suspect) {
  const auto directory = open_state_directory(suspect_directory);
  if (!directory) return std::unexpected(directory.error());
  const UniqueFd entry(
      ::openat(directory->get(), name_of(suspect).c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!entry) return errno_error(errno, "cannot write", std::filesystem::path(suspect_directory) / name_of(suspect));
  return {};
}

Suspects read_suspects() {
  Suspects suspects;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(suspect_directory, error)) {
    const std::string name = entry.path().filename();
    std::string_view rest = name;
    const auto device = parse_number<std::uint64_t>(take_until(rest, '-')),
               inode = parse_number<std::uint64_t>(take_until(rest, '-'));
    const auto user = parse_number<std::uint32_t>(rest);
    if (device && inode && user) suspects.insert({.file = {*device, *inode}, .user = *user});
  }
  return suspects;
}

}  // namespace rtev::enable
