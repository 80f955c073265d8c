// SPDX-License-Identifier: MIT
#include "kernel/enable_programs.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "enable.skel.h"
#include "kernel/bpf_ring.hpp"
#include "kernel/libbpf.hpp"

namespace rtev::kernel {
namespace {

using EnableSkeleton = std::unique_ptr<enable_bpf, SkeletonDestroy<enable_bpf__destroy>>;

/// More than the buffer holds.
constexpr std::size_t max_running_records = 1 << 12;

}  // namespace

struct EnablePrograms::State {
  EnableSkeleton skeleton;
  BpfRing running;
  std::set<pid_t> wanted{}, watched{};
  std::vector<UniqueFd> links{};
};

EnablePrograms::EnablePrograms(std::unique_ptr<State> state) : state_(std::move(state)) {}
EnablePrograms::EnablePrograms(EnablePrograms&&) noexcept = default;
EnablePrograms& EnablePrograms::operator=(EnablePrograms&&) noexcept = default;
EnablePrograms::~EnablePrograms() = default;

Result<EnablePrograms> EnablePrograms::load() {
  capture_libbpf_log();
  take_libbpf_warnings();
  EnableSkeleton skeleton{enable_bpf__open()};
  if (!skeleton) return std::unexpected(libbpf_error(errno, "cannot open the BPF programs that switch events on"));
  if (const int error = enable_bpf__load(skeleton.get()); error != 0)
    return std::unexpected(libbpf_error(-error, "cannot load the BPF programs that switch events on"));
  auto running = BpfRing::open(bpf_map__fd(skeleton->maps.running));
  if (!running) return std::unexpected(std::move(running.error()));
  return EnablePrograms{
      std::make_unique<State>(State{.skeleton = std::move(skeleton), .running = std::move(*running)})};
}

Result<void> EnablePrograms::want(pid_t tgid, std::uint64_t not_before_ns) {
  const rtev_wanted process{.not_before_ns = not_before_ns};
  if (bpf_map_update_elem(bpf_map__fd(state_->skeleton->maps.wanted), &tgid, &process, BPF_ANY) != 0)
    return errno_error(errno, "cannot watch one more process");
  state_->wanted.insert(tgid);
  return attach();
}

Result<void> EnablePrograms::watch(pid_t tgid, std::uint32_t user, bool may_filter) {
  const rtev_watched process{.user = user, .may_filter = may_filter, .root = 0, .mount = 0, .mounts = 0};
  if (bpf_map_update_elem(bpf_map__fd(state_->skeleton->maps.watched), &tgid, &process, BPF_ANY) != 0)
    return errno_error(errno, "cannot watch one more process");
  state_->watched.insert(tgid);
  return attach();
}

Result<void> EnablePrograms::attach() {
  if (!state_->links.empty()) return {};
  std::vector<UniqueFd> programs;
  const auto& all = state_->skeleton->progs;
  for (const bpf_program* program : {all.enable_switch, all.enable_tick, all.enable_exit})
    programs.emplace_back(::dup(bpf_program__fd(program)));
  auto links = attach_tracepoints(programs);
  if (!links) return std::unexpected(std::move(links.error()));
  state_->links = std::move(*links);
  return {};
}

void EnablePrograms::forget(pid_t tgid) {
  bpf_map_delete_elem(bpf_map__fd(state_->skeleton->maps.wanted), &tgid);
  state_->wanted.erase(tgid);
  detach_if_idle();
}

void EnablePrograms::unwatch(pid_t tgid) {
  bpf_map_delete_elem(bpf_map__fd(state_->skeleton->maps.watched), &tgid);
  state_->watched.erase(tgid);
  detach_if_idle();
}

void EnablePrograms::detach_if_idle() {
  if (state_->wanted.empty() && state_->watched.empty()) state_->links.clear();
}

int EnablePrograms::fd() const {
  return bpf_map__fd(state_->skeleton->maps.running);
}

void EnablePrograms::read(const std::function<void(const rtev_running&)>& consumer) {
  state_->running.read<rtev_running>(max_running_records,
                                     [&](const rtev_running& record, std::span<const std::byte>) { consumer(record); });
}

}  // namespace rtev::kernel
