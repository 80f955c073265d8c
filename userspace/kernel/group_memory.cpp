// SPDX-License-Identifier: MIT
#include "kernel/group_memory.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <bit>

#include "base/clock.hpp"
#include "base/unique_fd.hpp"
#include "bpf/records.h"
#include "kernel/libbpf.hpp"
#include "memory.skel.h"

namespace rtev::kernel {

struct GroupMemory::State {
  std::unique_ptr<memory_bpf, SkeletonDestroy<memory_bpf__destroy>> skeleton{memory_bpf__open()};
};

GroupMemory::GroupMemory() {
  capture_libbpf_log();
  state_ = std::make_unique<State>();
  auto& skeleton = state_->skeleton;
  if (skeleton) skeleton->rodata->page_shift = std::countr_zero(static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  if (skeleton && memory_bpf__load(skeleton.get()) != 0) skeleton.reset();
  take_libbpf_warnings();
}
GroupMemory::GroupMemory(GroupMemory&&) noexcept = default;
GroupMemory& GroupMemory::operator=(GroupMemory&&) noexcept = default;
GroupMemory::~GroupMemory() = default;

std::optional<std::uint64_t> GroupMemory::left(pid_t pid, std::uint64_t start_ticks) const {
  if (!state_->skeleton) return std::nullopt;
  bpf_iter_link_info info{};
  info.task.tid = static_cast<std::uint32_t>(pid);
  bpf_link_create_opts options{};
  options.sz = sizeof options;
  options.iter_info = &info;
  options.iter_info_len = sizeof info;
  constexpr int no_target = 0;
  const UniqueFd link(
      bpf_link_create(bpf_program__fd(state_->skeleton->progs.group_memory), no_target, BPF_TRACE_ITER, &options));
  const UniqueFd iterator(link ? bpf_iter_create(link.get()) : -1);
  rtev_group_memory found{};
  if (!iterator || ::read(iterator.get(), &found, sizeof found) != sizeof found) return std::nullopt;
  if (found.start_time / ns_per_tick != start_ticks) return std::nullopt;
  // The largest number of a counter that has no limit: as many pages as a signed number of bytes counts.
  const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 62;
  return found.pages_left >= most_bytes / page_bytes ? no_limit : found.pages_left * page_bytes;
}

}  // namespace rtev::kernel
