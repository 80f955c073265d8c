// SPDX-License-Identifier: MIT
#include "enable/progress.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <new>

#include "base/clock.hpp"

namespace rtev::enable {

Result<Progress> Progress::create() {
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno_error(errno, "cannot share memory with the process that switches events on");
  return Progress(new (memory) Shared{});
}

void Progress::Unmap::operator()(Shared* shared) const {
  ::munmap(shared, sizeof *shared);
}

Progress::Work Progress::current() const {
  while (true) {
    const std::uint64_t since_ns = shared_->since_ns;
    const std::int32_t pid = shared_->pid;
    // Otherwise the pid may belong to another time.
    if (since_ns == shared_->since_ns) return {.pid = since_ns == 0 ? 0 : pid, .since_ns = since_ns};
  }
}

void Progress::set(std::int32_t pid) const {
  shared_->since_ns = 0;
  shared_->pid = pid;
  if (pid != 0) shared_->since_ns = monotonic_ns();
}

}  // namespace rtev::enable
