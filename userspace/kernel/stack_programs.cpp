// SPDX-License-Identifier: MIT
#include "kernel/stack_programs.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <string>
#include <utility>

#include "base/capabilities.hpp"
#include "base/unique_fd.hpp"
#include "kernel/bpf_ring.hpp"
#include "kernel/libbpf.hpp"
#include "kernel/stack_records.hpp"
#include "stacks.skel.h"

namespace rtev::kernel {
namespace {

static_assert(sizeof(rtev_stack) == 344 && sizeof(rtev_stack_target) == 168 && sizeof(rtev_stack_copy) == 16 &&
                  sizeof(rtev_stack_drops) == 32 && sizeof(rtev_sleep) == 24,
              "the BPF programs are compiled with the same layout");

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint32_t max_rate_hz = 20'000;
constexpr std::size_t min_buffer_bytes = 256 << 10;
constexpr std::size_t max_buffer_bytes = std::size_t{1} << 30;
constexpr std::uint32_t scratches_for_interrupts = 1, scratches_for_uprobes = 2;

using StackSkeleton = std::unique_ptr<stacks_bpf, SkeletonDestroy<stacks_bpf__destroy>>;

std::unexpected<Error> stacks_error(Error error) {
  error.hint += "; without stacks, programs can be traced";
  return std::unexpected(std::move(error));
}

std::uint32_t per_window(std::uint32_t per_second) {
  return std::max<std::uint32_t>(per_second / (second_ns / RTEV_STACK_WINDOW_NS), 1);
}

/// A timer of one cpu that runs while the cpu does. Empty, and errno, if the cpu is not online.
UniqueFd open_timer(int cpu, std::uint64_t period_ns) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = period_ns;
  attr.disabled = 1;
  attr.exclude_idle = 1;
  constexpr int any_process = -1, no_group = -1;
  return UniqueFd{
      static_cast<int>(::syscall(SYS_perf_event_open, &attr, any_process, cpu, no_group, PERF_FLAG_FD_CLOEXEC))};
}

Error timer_error(int code, int cpu) {
  Error error = libbpf_error(code, "cannot open a timer of cpu", std::to_string(cpu));
  // Whoever has these rights is refused by something else.
  if ((code == EACCES || code == EPERM) && has_capability(CAP_PERFMON) && has_capability(CAP_SYS_ADMIN))
    error.hint =
        "perf_event_open(2) was refused in spite of all rights: a filter of system calls (seccomp), as containers "
        "have, may forbid it";
  return error;
}

Result<std::vector<UniqueFd>> open_timers(int cpus, std::uint64_t period_ns) {
  std::vector<UniqueFd> timers;
  timers.reserve(static_cast<std::size_t>(cpus));
  for (int cpu = 0; cpu < cpus; ++cpu) {
    UniqueFd timer = open_timer(cpu, period_ns);
    if (timer)
      timers.push_back(std::move(timer));
    else if (errno != ENODEV && errno != ENXIO)
      return std::unexpected(timer_error(errno, cpu));
  }
  return timers;
}

}  // namespace

struct StackPrograms::State {
  StackSkeleton skeleton;
  BpfRing stacks;
  std::size_t max_records;  ///< of one read_stacks(): as many as the buffer can hold
  std::vector<UniqueFd> timers;
  bool uprobe_multi;
  bool allocations;
  AttachUprobes attach;
  std::vector<UniqueFd> links{};
  StackDropCounters dropped{};
};

StackPrograms::StackPrograms(std::unique_ptr<State> state) : state_(std::move(state)) {}
StackPrograms::StackPrograms(StackPrograms&&) noexcept = default;
StackPrograms& StackPrograms::operator=(StackPrograms&&) noexcept = default;
StackPrograms::~StackPrograms() = default;

Result<StackPrograms> StackPrograms::load(const StackOptions& options) {
  capture_libbpf_log();
  const bool uprobe_multi = options.allocations && options.uprobe_multi && probe_bpf().uprobe_multi;
  take_libbpf_warnings();  // discards those of the attempt
  const int cpus = libbpf_num_possible_cpus();
  if (cpus < 0) return errno_error(-cpus, "cannot count the CPUs");
  const std::uint64_t period_ns = second_ns / std::clamp<std::uint32_t>(options.rate_hz, 1, max_rate_hz);
  const auto buffer =
      static_cast<std::uint32_t>(std::bit_ceil(std::clamp(options.buffer_bytes, min_buffer_bytes, max_buffer_bytes)));

  StackSkeleton skeleton{stacks_bpf__open()};
  if (!skeleton) return stacks_error(libbpf_error(errno, "cannot open the BPF programs for stacks"));
  auto& constants = *skeleton->rodata;
  constants.stack_bytes = std::clamp<std::uint32_t>(options.stack_bytes, RTEV_MIN_STACK_BYTES, RTEV_MAX_STACK_BYTES);
  constants.sample_ns = period_ns;
  constants.min_sleep_ns = options.min_sleep_ns;
  constants.window_limits[0] = per_window(options.off_cpu_limit);
  constants.window_limits[1] = per_window(options.allocation_limit);
  constants.window_limit = per_window(options.total_limit);
  constants.buffer_bytes = buffer;
  constants.buffer_shift = static_cast<std::uint32_t>(std::bit_width(buffer)) - 3;  // a quarter
  constants.kernel_stacks = options.kernel_frames;
  constants.kernel_stacks_of_sleeps = options.sleep_kernel_frames;
  constants.knows_threads = options.threads_map_fd >= 0;
  constants.scratches_of_cpu = scratches_for_interrupts + (options.allocations ? scratches_for_uprobes : 0);
  const auto& maps = skeleton->maps;
  bpf_map__set_max_entries(maps.stacks, buffer);
  bpf_map__set_max_entries(maps.stack_scratches, constants.scratches_of_cpu * static_cast<std::uint32_t>(cpus));
  if (!options.off_cpu) bpf_map__set_max_entries(maps.sleeps, 1);
  if (options.threads_map_fd < 0) bpf_map__set_max_entries(maps.threads, 1);
  if (options.threads_map_fd >= 0 && bpf_map__reuse_fd(maps.threads, options.threads_map_fd) != 0)
    return stacks_error(libbpf_error(errno, "cannot share a map of the BPF programs"));
  bpf_program__set_autoload(skeleton->progs.stack_sample, options.rate_hz > 0);
  bpf_program__set_autoload(skeleton->progs.stack_switch, options.off_cpu);
  bpf_program__set_autoload(skeleton->progs.stack_allocation, options.allocations);
  if (uprobe_multi) prepare_uprobe_multi(skeleton->progs.stack_allocation);
  if (const int error = stacks_bpf__load(skeleton.get()); error != 0)
    return stacks_error(libbpf_error(-error, "cannot load the BPF programs for stacks"));

  std::vector<UniqueFd> timers;
  if (options.rate_hz > 0) {
    auto opened = open_timers(cpus, period_ns);
    if (!opened) return stacks_error(std::move(opened.error()));
    timers = std::move(*opened);
  }
  auto stacks = BpfRing::open(bpf_map__fd(skeleton->maps.stacks));
  if (!stacks) return std::unexpected(std::move(stacks.error()));
  return StackPrograms{std::make_unique<State>(State{.skeleton = std::move(skeleton),
                                                     .stacks = std::move(*stacks),
                                                     .max_records = buffer / sizeof(rtev_stack),
                                                     .timers = std::move(timers),
                                                     .uprobe_multi = uprobe_multi,
                                                     .allocations = options.allocations,
                                                     .attach = options.attach})};
}

Result<void> StackPrograms::attach() {
  auto& programs = state_->skeleton->progs;
  auto& links = state_->skeleton->links;
  const std::array attachments{
      Attachment{programs.stack_exec, &links.stack_exec},
      Attachment{programs.stack_exit, &links.stack_exit},
      Attachment{programs.stack_switch, &links.stack_switch},
  };
  if (auto attached = attach_programs(attachments); !attached) return attached;
  for (const UniqueFd& timer : state_->timers) {
    UniqueFd link{bpf_link_create(bpf_program__fd(programs.stack_sample), timer.get(), BPF_PERF_EVENT, nullptr)};
    if (!link) return std::unexpected(libbpf_error(errno, "cannot attach to a timer"));
    state_->links.push_back(std::move(link));
  }
  return {};
}

Result<AttachedUprobes> StackPrograms::probe(int file, std::uint32_t binary_id, const ProbePlan& plan, std::uint32_t) {
  if (!state_->allocations) return AttachedUprobes{};
  const UprobeProgram program{.program = state_->skeleton->progs.stack_allocation, .multi = state_->uprobe_multi};
  return state_->attach(request_for(program, file, binary_id, plan.sites));
}

int StackPrograms::fd() const {
  return bpf_map__fd(state_->skeleton->maps.stacks);
}

void StackPrograms::read_stacks(const StackConsumer& consumer) {
  state_->stacks.read<rtev_stack>(state_->max_records,
                                  [&](const rtev_stack& record, std::span<const std::byte> payload) {
                                    if (record.bytes <= payload.size()) consumer(record, payload.first(record.bytes));
                                  });
}

std::vector<StackDrop> StackPrograms::take_stack_drops(std::uint64_t now_ns) {
  return state_->dropped.take(state_->skeleton->bss->stack_drops, now_ns);
}

bool StackPrograms::has_slept_since(pid_t tid, std::uint64_t left_ns, std::uint64_t now_ns) const {
  rtev_sleep sleep{};
  const bool is_known = bpf_map_lookup_elem(bpf_map__fd(state_->skeleton->maps.sleeps), &tid, &sleep) == 0;
  return is_known && sleep.left_ns == left_ns && now_ns >= left_ns + state_->skeleton->rodata->min_sleep_ns;
}

Result<void> StackPrograms::add_target(pid_t tgid, const rtev_stack_target& target) {
  if (bpf_map_update_elem(bpf_map__fd(state_->skeleton->maps.stack_targets), &tgid, &target, BPF_ANY) != 0)
    return errno_error(errno, "cannot take stacks of process", std::to_string(tgid));
  std::atomic_ref{state_->skeleton->bss->had_targets[static_cast<std::uint32_t>(tgid) % RTEV_TARGET_FILTER]}.store(1);
  return {};
}

void StackPrograms::remove_target(pid_t tgid) {
  bpf_map_delete_elem(bpf_map__fd(state_->skeleton->maps.stack_targets), &tgid);
}

void StackPrograms::set_sampling(bool on) {
  for (const UniqueFd& timer : state_->timers)
    ::ioctl(timer.get(), on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

}  // namespace rtev::kernel
