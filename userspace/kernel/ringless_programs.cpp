// SPDX-License-Identifier: MIT
#include "kernel/ringless_programs.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <span>
#include <utility>

#include "kernel/bpf_ring.hpp"
#include "kernel/libbpf.hpp"
#include "ringless.skel.h"

namespace rtev::kernel {
namespace {

static_assert(sizeof(rtev_ringless_binary) == 88 && sizeof(rtev_probed) == 40 && sizeof(rtev_ringless_process) == 64,
              "the BPF programs are compiled with the same layout");

/// Records of one read(): more than the buffer holds, so that programs cannot keep it from returning.
constexpr std::size_t max_records = 1 << 18;

/// Each takes a link of its own.
constexpr std::size_t max_single_processes = 128;

using RinglessSkeleton = std::unique_ptr<ringless_bpf, SkeletonDestroy<ringless_bpf__destroy>>;

std::unexpected<Error> ringless_error(Error error) {
  error.hint += "; without --ringless, programs with events on can be traced";
  return std::unexpected(std::move(error));
}

}  // namespace

struct RinglessPrograms::State {
  RinglessSkeleton skeleton;
  BpfRing probed;
  std::vector<pid_t> pids;
  bool uprobe_multi;
  AttachUprobes attach;
};

RinglessPrograms::RinglessPrograms(std::unique_ptr<State> state) : state_(std::move(state)) {}
RinglessPrograms::RinglessPrograms(RinglessPrograms&&) noexcept = default;
RinglessPrograms& RinglessPrograms::operator=(RinglessPrograms&&) noexcept = default;
RinglessPrograms::~RinglessPrograms() = default;

Result<RinglessPrograms> RinglessPrograms::load(const RinglessOptions& options) {
  capture_libbpf_log();
  take_libbpf_warnings();
  const bool uprobe_multi = options.uprobe_multi && probe_bpf().uprobe_multi;
  RinglessSkeleton skeleton{ringless_bpf__open()};
  if (!skeleton) return ringless_error(libbpf_error(errno, "cannot open the BPF programs of --ringless"));
  constexpr std::uint64_t windows_per_second = 1'000'000'000 / RTEV_RINGLESS_WINDOW_NS;
  skeleton->rodata->window_limit = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(options.limit / windows_per_second, 1, std::uint32_t{1} << 31));
  skeleton->rodata->only_followed = options.followed_map_fd >= 0;
  if (options.followed_map_fd >= 0 && bpf_map__reuse_fd(skeleton->maps.followed, options.followed_map_fd) != 0)
    return ringless_error(libbpf_error(errno, "cannot share a map of the BPF programs"));
  if (uprobe_multi) prepare_uprobe_multi(skeleton->progs.runtime_event);
  if (const int error = ringless_bpf__load(skeleton.get()); error != 0)
    return ringless_error(libbpf_error(-error, "cannot load the BPF programs of --ringless"));
  const std::array attachments{
      Attachment{skeleton->progs.ringless_exec, &skeleton->links.ringless_exec},
      Attachment{skeleton->progs.ringless_exit, &skeleton->links.ringless_exit},
  };
  if (auto attached = attach_programs(attachments); !attached) return ringless_error(std::move(attached.error()));
  auto probed = BpfRing::open(bpf_map__fd(skeleton->maps.probed));
  if (!probed) return std::unexpected(std::move(probed.error()));
  return RinglessPrograms{std::make_unique<State>(State{.skeleton = std::move(skeleton),
                                                        .probed = std::move(*probed),
                                                        .pids = options.pids,
                                                        .uprobe_multi = uprobe_multi,
                                                        .attach = options.attach})};
}

Result<void> RinglessPrograms::describe(std::uint32_t binary_id, const rtev_ringless_binary& binary) {
  if (bpf_map_update_elem(bpf_map__fd(state_->skeleton->maps.binaries), &binary_id, &binary, BPF_ANY) == 0) return {};
  return errno_error(errno, "cannot probe one more program");
}

Result<AttachedUprobes> RinglessPrograms::probe(int file, std::uint32_t binary_id, const ProbePlan& plan,
                                                std::uint32_t round) {
  rtev_ringless_binary binary = plan.ringless;
  binary.round = round;
  if (auto described = describe(binary_id, binary); !described) return std::unexpected(std::move(described.error()));

  const UprobeProgram program{.program = state_->skeleton->progs.runtime_event, .multi = state_->uprobe_multi};
  UprobeRequest request = request_for(program, file, binary_id, plan.sites);
  request.all_sites = true;
  // Probes in single processes spare the other processes of the binary.
  if (state_->pids.size() <= max_single_processes && can_probe_one_process(program)) request.pids = state_->pids;
  return state_->attach(std::move(request));
}

void RinglessPrograms::forget(std::uint32_t binary_id) {
  bpf_map_delete_elem(bpf_map__fd(state_->skeleton->maps.binaries), &binary_id);
}

int RinglessPrograms::fd() const {
  return bpf_map__fd(state_->skeleton->maps.probed);
}

void RinglessPrograms::read(const std::function<void(const rtev_probed&)>& consumer) {
  state_->probed.read<rtev_probed>(max_records,
                                   [&](const rtev_probed& record, std::span<const std::byte>) { consumer(record); });
}

void RinglessPrograms::arm_wakeup() {
  std::atomic_ref{state_->skeleton->bss->reader_asleep}.store(1);
}

void RinglessPrograms::ignore(pid_t tgid, std::uint64_t time_ns) {
  const int map = bpf_map__fd(state_->skeleton->maps.processes);
  rtev_ringless_process process{};
  if (bpf_map_lookup_elem(map, &tgid, &process) != 0 || process.since_ns > time_ns) return;
  process.ignored = 1;
  bpf_map_update_elem(map, &tgid, &process, BPF_EXIST);
}

std::uint64_t RinglessPrograms::dropped() const {
  return std::atomic_ref{state_->skeleton->bss->dropped_events}.load();
}

std::uint64_t RinglessPrograms::unattributed() const {
  return std::atomic_ref{state_->skeleton->bss->unattributed_events}.load();
}

}  // namespace rtev::kernel
