// SPDX-License-Identifier: MIT
#include "enable/process_memory.hpp"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace rtev::enable {

Result<ProcessMemory> ProcessMemory::open(std::int32_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/mem";
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return errno_error(errno, "cannot find process", std::to_string(pid));
  // The file belongs to the user of the process, and only he may open it for writing; besides, the kernel asks for
  // CAP_SYS_PTRACE.
  const auto own_user = static_cast<uid_t>(::setfsuid(status.st_uid));
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  const int code = errno;
  ::setfsuid(own_user);
  errno = code;
  if (!fd) return errno_error(errno, "cannot open the memory of process", std::to_string(pid));
  return ProcessMemory(std::move(fd));
}

std::optional<std::uint64_t> ProcessMemory::word(std::uint64_t address) const {
  std::uint64_t word = 0;
  if (::pread(fd_.get(), &word, sizeof word, static_cast<off_t>(address)) != sizeof word) return std::nullopt;
  return word;
}

std::optional<std::string> ProcessMemory::text(std::uint64_t address, std::size_t max_bytes) const {
  std::string text(max_bytes, '\0');
  const ssize_t got = ::pread(fd_.get(), text.data(), text.size(), static_cast<off_t>(address));
  if (got <= 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(got));
  const std::size_t end = text.find('\0');
  if (end == std::string::npos) return std::nullopt;
  text.resize(end);
  return text;
}

bool ProcessMemory::write_word(std::uint64_t address, std::uint64_t value) const {
  if (address % sizeof value != 0) return false;
  return ::pwrite(fd_.get(), &value, sizeof value, static_cast<off_t>(address)) == sizeof value;
}

}  // namespace rtev::enable
