// SPDX-License-Identifier: MIT
#include "kernel/ringless_programs.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "kernel/bpf_ring.hpp"
#include "kernel/features.hpp"
#include "kernel/libbpf_log.hpp"
#include "ringless.skel.h"

namespace rtev::kernel {
namespace {

static_assert(sizeof(rtev_ringless_binary) == 88 && sizeof(rtev_probed) == 40 && sizeof(rtev_ringless_process) == 48,
              "the records are the same on both sides");

/// Records of one drain: more than the buffer holds, so that programs cannot keep the reader for ever.
constexpr std::size_t most_records = 1 << 18;

struct SkeletonDestroy {
  void operator()(ringless_bpf* skeleton) const { ringless_bpf__destroy(skeleton); }
};
using Skeleton = std::unique_ptr<ringless_bpf, SkeletonDestroy>;

Error load_error(int code, const char* what) {
  Error error = errno_error(code, what).error();
  if (const std::string warnings = take_libbpf_warnings(); !warnings.empty())
    error.why += fmt::format(" ({})", warnings);
  error.hint = "rtev-bpf doctor tells what this host allows; without --ringless programs with events on are traced";
  return error;
}

}  // namespace

struct RinglessPrograms::State {
  Skeleton skeleton;
  BpfRing probed;
  std::vector<pid_t> pids;
  bool uprobe_multi;
};

RinglessPrograms::RinglessPrograms(std::unique_ptr<State> state) : state_(std::move(state)) {}
RinglessPrograms::RinglessPrograms(RinglessPrograms&&) noexcept = default;
RinglessPrograms& RinglessPrograms::operator=(RinglessPrograms&&) noexcept = default;
RinglessPrograms::~RinglessPrograms() = default;

Result<RinglessPrograms> RinglessPrograms::load(const RinglessOptions& options) {
  capture_libbpf_log();
  take_libbpf_warnings();
  const bool uprobe_multi = options.uprobe_multi && probe_bpf().uprobe_multi;
  Skeleton skeleton{ringless_bpf__open()};
  if (!skeleton) return std::unexpected(load_error(errno, "cannot open the BPF programs of --ringless"));
  constexpr std::uint64_t windows_per_second = 1'000'000'000 / RTEV_RINGLESS_WINDOW_NS;
  skeleton->rodata->window_limit = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(options.limit / windows_per_second, 1, std::uint32_t{1} << 31));
  skeleton->rodata->only_followed = options.followed_map_fd >= 0;
  if (options.followed_map_fd >= 0 && bpf_map__reuse_fd(skeleton->maps.followed, options.followed_map_fd) != 0)
    return std::unexpected(load_error(errno, "cannot share a map of the BPF programs"));
  if (uprobe_multi)
    bpf_program__set_expected_attach_type(skeleton->progs.runtime_event,
                                          static_cast<bpf_attach_type>(attach_type_uprobe_multi));
  if (const int error = ringless_bpf__load(skeleton.get()); error != 0)
    return std::unexpected(load_error(-error, "cannot load the BPF programs of --ringless"));
  const std::pair<const bpf_program*, bpf_link**> attachments[] = {
      {skeleton->progs.ringless_exec, &skeleton->links.ringless_exec},
      {skeleton->progs.ringless_exit, &skeleton->links.ringless_exit},
  };
  for (const auto& [program, link] : attachments) {
    *link = bpf_program__attach(program);
    if (*link == nullptr) return std::unexpected(load_error(errno, "cannot attach the BPF programs of --ringless"));
  }
  auto probed = BpfRing::open(bpf_map__fd(skeleton->maps.probed));
  if (!probed) return std::unexpected(std::move(probed.error()));
  return RinglessPrograms{std::make_unique<State>(State{.skeleton = std::move(skeleton),
                                                        .probed = std::move(*probed),
                                                        .pids = options.pids,
                                                        .uprobe_multi = uprobe_multi})};
}

Result<void> RinglessPrograms::describe(std::uint32_t binary_id, const rtev_ringless_binary& binary) {
  if (bpf_map_update_elem(bpf_map__fd(state_->skeleton->maps.binaries), &binary_id, &binary, BPF_ANY) == 0) return {};
  return errno_error(errno, "cannot probe one more program");
}

void RinglessPrograms::forget(std::uint32_t binary_id) {
  bpf_map_delete_elem(bpf_map__fd(state_->skeleton->maps.binaries), &binary_id);
}

Result<std::vector<UprobeLink>> RinglessPrograms::attach(int binary_fd, std::uint32_t binary_id,
                                                         std::span<const EmitterSite> sites) {
  std::vector<UprobeTarget> targets;
  for (const EmitterSite& site : sites)
    targets.push_back({.file_offset = site.file_offset,
                       .cookie = std::uint64_t{binary_id} << 8 | static_cast<std::uint64_t>(site.emitter)});
  const std::string path = fmt::format("/proc/self/fd/{}", binary_fd);
  const bpf_program* program = state_->skeleton->progs.runtime_event;
  const auto attach_for = [&](pid_t pid) {
    return state_->uprobe_multi ? attach_uprobe_multi(bpf_program__fd(program), path, targets, pid)
                                : attach_uprobes(program, path, targets);
  };
  // A filter by pid spares the other processes of the binary; through perf_event there is one by thread only.
  const bool filters = state_->uprobe_multi && !state_->pids.empty() && uprobe_multi_filters_by_process();
  const std::vector<pid_t> everyone{every_process};
  std::vector<UprobeLink> links;
  for (const pid_t pid : filters ? state_->pids : everyone) {
    auto attached = attach_for(pid);
    if (!attached && attached.error().code == ESRCH) continue;  // it has ended
    if (!attached) return std::unexpected(std::move(attached.error()));
    if (attached->skipped > 0)
      return std::unexpected(Error{.what = "cannot probe", .subject = path, .why = "not all that writes events"});
    std::ranges::move(attached->links, std::back_inserter(links));
  }
  return links;
}

int RinglessPrograms::fd() const {
  return bpf_map__fd(state_->skeleton->maps.probed);
}

void RinglessPrograms::drain(const std::function<void(const rtev_probed&)>& consumer) {
  state_->probed.read<rtev_probed>(most_records,
                                   [&](const rtev_probed& record, std::span<const std::byte>) { consumer(record); });
}

void RinglessPrograms::arm_wakeup() {
  std::atomic_ref{state_->skeleton->bss->reader_asleep}.store(1);
}

void RinglessPrograms::silence(pid_t tgid, std::uint64_t time_ns) {
  const int map = bpf_map__fd(state_->skeleton->maps.processes);
  rtev_ringless_process process{};
  if (bpf_map_lookup_elem(map, &tgid, &process) != 0 || process.since_ns > time_ns) return;
  process.ignored = 1;
  bpf_map_update_elem(map, &tgid, &process, BPF_EXIST);
}

std::uint64_t RinglessPrograms::dropped() const {
  return std::atomic_ref{state_->skeleton->bss->dropped_events}.load();
}

std::uint64_t RinglessPrograms::homeless() const {
  return std::atomic_ref{state_->skeleton->bss->unattributed_events}.load();
}

}  // namespace rtev::kernel
