// SPDX-License-Identifier: MIT
#include "enable/process_memory.hpp"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace rtev::enable {

Result<ProcessMemory> ProcessMemory::open(std::int32_t pid, const UniqueFd& directory, uid_t user) {
  // The file belongs to the user of the process, and only he may open it for writing; besides, the kernel asks for
  // CAP_SYS_PTRACE.
  const auto own_user = static_cast<uid_t>(::setfsuid(user));
  UniqueFd fd(::openat(directory.get(), "mem", O_RDWR | O_CLOEXEC));
  const int code = errno;
  ::setfsuid(own_user);
  if (!fd) return errno_error(code, "cannot open the memory of process", std::to_string(pid));
  return ProcessMemory(std::move(fd), pid);
}

/// A memory without users has no byte, not even one that cannot be read (EIO).
bool ProcessMemory::is_alive() const {
  char byte = 0;
  return ::pread(fd_.get(), &byte, sizeof byte, 0) != 0;
}

/// Who reads or writes /proc/PID/mem and waits for a page holds the lock of the process's mappings meanwhile: uprobes
/// wait for it then, and with them all forks of the host. process_vm_readv(2) lets it go at the first wait. It may read
/// another program that the process runs by now; then the memory is gone, which is looked at after it. Returns the
/// number of bytes.
std::size_t ProcessMemory::read(std::uint64_t address, void* bytes, std::size_t size) const {
  const iovec local{.iov_base = bytes, .iov_len = size},
      remote{.iov_base = reinterpret_cast<void*>(address), .iov_len = size};  // NOLINT(performance-no-int-to-ptr)
  const ssize_t got = ::process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  return got > 0 && is_alive() ? static_cast<std::size_t>(got) : 0;
}

std::optional<std::uint64_t> ProcessMemory::word(std::uint64_t address) const {
  std::uint64_t word = 0;
  return read(address, &word, sizeof word) == sizeof word ? std::optional(word) : std::nullopt;
}

std::string ProcessMemory::bytes(std::uint64_t address, std::size_t max_bytes) const {
  std::string bytes(max_bytes, '\0');
  bytes.resize(read(address, bytes.data(), bytes.size()));
  return bytes;
}

std::optional<std::string> ProcessMemory::text(std::uint64_t address, std::size_t max_bytes) const {
  std::string text = bytes(address, max_bytes);
  const std::size_t end = text.find('\0');
  if (end == std::string::npos) return std::nullopt;
  text.resize(end);
  return text;
}

bool ProcessMemory::write_word(std::uint64_t address, std::uint64_t value) const {
  // The page is waited for here, not while the write holds the lock.
  std::uint64_t present = 0;
  if (address % sizeof value != 0 || read(address, &present, sizeof present) != sizeof present) return false;
  return ::pwrite(fd_.get(), &value, sizeof value, static_cast<off_t>(address)) == sizeof value;
}

}  // namespace rtev::enable
