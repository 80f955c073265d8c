// SPDX-License-Identifier: MIT
#include "enable/progress.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <new>

#include "base/clock.hpp"
#include "base/subordinate_users.hpp"

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
    Work work{.since_ns = shared_->since_ns};
    work.pid = shared_->pid;
    work.start_ticks = shared_->start_ticks;
    work.user = shared_->user;
    // Otherwise these may belong to another time.
    if (work.since_ns == shared_->since_ns) return work.since_ns == 0 ? Work{} : work;
  }
}

void Progress::set(const Work& work) const {
  shared_->since_ns = 0;
  shared_->pid = work.pid;
  shared_->start_ticks = work.start_ticks;
  shared_->user = work.user;
  shared_->since_ns = work.since_ns;
}

Progress::Scope Progress::work_on(std::int32_t pid, std::uint64_t start_ticks, std::uint32_t user) const {
  return {*this, Work{.pid = pid, .start_ticks = start_ticks, .user = user, .since_ns = monotonic_ns()}};
}

Progress::Scope Progress::work_on(const HeldProcess& process) const {
  return work_on(process.pid(), process.start_ticks(), charged_user(process.credentials().user));
}

/// The time for the outer process goes on; but not that for which the worker was idle.
Progress::Scope::~Scope() {
  if (outer_.since_ns != 0 && progress_.current().since_ns == 0) outer_.since_ns = monotonic_ns();
  progress_.set(outer_);
}

}  // namespace rtev::enable
