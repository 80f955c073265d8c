// SPDX-License-Identifier: MIT
#include "kernel/programs.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "base/file_limit.hpp"
#include "base/file_links.hpp"
#include "base/mappings_check.hpp"
#include "kernel/bpf_ring.hpp"
#include "kernel/features.hpp"
#include "kernel/libbpf.hpp"
#include "kernel/sched_records.hpp"
#include "kernel/uprobe_link.hpp"
#include "rtev.skel.h"
#include "stream/registry.hpp"

namespace rtev::kernel {
namespace {

static_assert(sizeof(rtev_lifecycle) == 80 && offsetof(rtev_ring_record, paths) == 128 && sizeof(rtev_sched) == 88 &&
                  sizeof(rtev_usage) == 88 && sizeof(rtev_tracked) == 96 && sizeof(rtev_saved) == 40 &&
                  sizeof(rtev_ring) == 40 + 8 * RTEV_REMEMBERED_DOMAINS,
              "the BPF programs are compiled with the same layout");
static_assert(RTEV_RING_SLOTS == ring_slots && RTEV_MAX_DOMAINS == max_domains);

/// Records of one read_lifecycle(): twice what the buffer holds, so that many execs in a row cannot keep it from
/// returning.
constexpr std::size_t max_lifecycle_records = 8192;

/// Records of one read_saved(): as many as the buffer can hold.
constexpr std::size_t max_saved_records = RTEV_SAVED_BUFFER_BYTES / sizeof(rtev_saved);

/// Records of one look_at_cpus(), which asks for one at a time.
constexpr std::size_t max_wakeups = 16;

/// How long to wait for another thread that is mapping or unmapping a file: one millisecond in all.
constexpr int max_look_retries = 20;
constexpr std::chrono::microseconds look_retry_interval{50};

using MainSkeleton = std::unique_ptr<rtev_bpf, SkeletonDestroy<rtev_bpf__destroy>>;

/// What is attached to save all rings fires on page faults before this version.
constexpr KernelVersion cheap_to_save_all{6, 4};

/// The programs of a command run for the first time as often as not, and for milliseconds.
rtev_save_mode default_save_mode(bool follow) {
  return follow && is_kernel_since(cheap_to_save_all) ? RTEV_SAVE_ALL : RTEV_SAVE_KNOWN;
}

/// True if the kernel has the tracepoint sched_prepare_exec. To look for it in its types would take 10 ms.
bool announces_execs() {
  return is_kernel_since({6, 10});
}

Result<UniqueFd> make_wait_fd(const SchedBuffers& buffers) {
  UniqueFd wait{::epoll_create1(EPOLL_CLOEXEC)};
  if (!wait) return errno_error(errno, "cannot create an epoll instance");
  // Edge-triggered: the BPF programs signal when a buffer is filling up; a few records are not worth a wake-up.
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {}};
  for (std::uint16_t i = 0; i < buffers.count(); ++i) {
    if (::epoll_ctl(wait.get(), EPOLL_CTL_ADD, buffers.fd(i), &event) != 0)
      return errno_error(errno, "cannot wait for BPF buffers");
  }
  return wait;
}

/// Runs a program that answers a question. Nothing if that fails.
template <typename Asked>
std::optional<std::uint32_t> run(const bpf_program* program, Asked& asked) {
  bpf_test_run_opts options{};
  options.sz = sizeof options;
  options.ctx_in = &asked;
  options.ctx_size_in = sizeof asked;
  if (bpf_prog_test_run_opts(bpf_program__fd(program), &options) != 0) return std::nullopt;
  return options.retval;
}

}  // namespace

struct Programs::State {
  MainSkeleton skeleton;
  BpfRing lifecycle;
  BpfRing saved;
  BpfRing wakeups;
  SchedBuffers sched;
  UniqueFd wait;
  std::uint32_t cpus;  ///< possible ones
  bool uprobe_multi;
  AttachUprobes attach;
  AttachTracepoints attach_again;
  std::vector<UniqueFd> sched_links{};
  SchedDropCounters dropped{};
  std::vector<std::uint32_t> on_cpu{};  ///< slots, sorted; as of look_at_cpus()
  std::uint64_t untracked = 0;          ///< by track()

  Result<void> attach_sched(const AttachTracepoints& how);
};

Result<void> Programs::State::attach_sched(const AttachTracepoints& how) {
  const auto& programs = skeleton->progs;
  std::vector<UniqueFd> loaded;
  // The busiest last: attaching interrupts all cpus for a moment, which should not be traced.
  for (const bpf_program* program :
       {programs.thread_wakeup_new, programs.thread_waking, programs.thread_interrupted, programs.thread_switch}) {
    if (bpf_program__autoload(program)) loaded.emplace_back(::fcntl(bpf_program__fd(program), F_DUPFD_CLOEXEC, 0));
  }
  auto links = how(std::move(loaded));
  if (!links) return std::unexpected(std::move(links.error()));
  sched_links = std::move(*links);
  return {};
}

Programs::Programs(std::unique_ptr<State> state) : state_(std::move(state)) {}
Programs::Programs(Programs&&) noexcept = default;
Programs& Programs::operator=(Programs&&) noexcept = default;
Programs::~Programs() = default;

Result<Programs> Programs::load(const ProgramOptions& options) {
  capture_libbpf_log();
  raise_file_limit();  // each ring and each probed binary needs descriptors
  const HostFeatures host = inspect_host();
  if (const Feature* feature = host.blocking())
    return std::unexpected(
        Error{.what = "cannot trace this host", .why = feature->name + ": " + feature->found, .hint = feature->hint});
  take_libbpf_warnings();  // discards those of the inspection, whose attempts may fail

  const int cpus = libbpf_num_possible_cpus();
  if (cpus < 0) return errno_error(-cpus, "cannot count the CPUs");
  const auto plan = plan_sched_buffers(options.sched_buffer_bytes, static_cast<std::uint32_t>(cpus));
  const bool sched = options.sched != RTEV_SCHED_OFF;
  const bool uprobe_multi = options.uprobe_multi && host.uprobe_multi;

  MainSkeleton skeleton{rtev_bpf__open()};
  if (!skeleton) return std::unexpected(libbpf_error(errno, "cannot open the BPF programs"));
  skeleton->rodata->follow_only = options.follow;
  skeleton->rodata->sched_mode = options.sched;
  const rtev_save_mode save_rings = options.save_rings.value_or(default_save_mode(options.follow));
  skeleton->rodata->save_mode = save_rings;
  skeleton->rodata->page_shift =
      static_cast<std::uint32_t>(std::countr_zero(static_cast<unsigned long>(::sysconf(_SC_PAGESIZE))));
  skeleton->rodata->sched_buffer_count = plan.count;
  skeleton->rodata->sched_wakeup_shift = plan.wakeup_shift;
  bpf_map__set_max_entries(skeleton->maps.sched_buffers, plan.count);
  if (options.sched != RTEV_SCHED_SUMS) bpf_map__set_max_entries(skeleton->maps.usages, 1);
  bpf_program__set_autoload(skeleton->progs.thread_waking, sched);
  bpf_program__set_autoload(skeleton->progs.thread_wakeup_new, sched);
  bpf_program__set_autoload(skeleton->progs.runtime_function, true);
  bpf_program__set_autoload(skeleton->progs.ring_unmapped, save_rings == RTEV_SAVE_ALL);
  const bool before_exec = save_rings != RTEV_SAVE_OFF && announces_execs();
  bpf_program__set_autoload(skeleton->progs.ring_before_exec, before_exec);
  bpf_program__set_autoload(skeleton->progs.ring_before_thread_end, before_exec);
  if (save_rings == RTEV_SAVE_OFF)
    bpf_map__set_max_entries(skeleton->maps.saved, static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE)));
  if (uprobe_multi) prepare_uprobe_multi(skeleton->progs.runtime_function);
  if (const int error = rtev_bpf__load(skeleton.get()); error != 0)
    return std::unexpected(libbpf_error(-error, "cannot load the BPF programs"));

  SchedBuffers buffers;
  if (sched) {
    auto created = SchedBuffers::create(plan, bpf_map__fd(skeleton->maps.sched_buffers));
    if (!created) return std::unexpected(std::move(created.error()));
    buffers = std::move(*created);
  }
  auto lifecycle = BpfRing::open(bpf_map__fd(skeleton->maps.lifecycle));
  if (!lifecycle) return std::unexpected(std::move(lifecycle.error()));
  auto saved = BpfRing::open(bpf_map__fd(skeleton->maps.saved));
  if (!saved) return std::unexpected(std::move(saved.error()));
  auto wakeups = BpfRing::open(bpf_map__fd(skeleton->maps.wakeups));
  if (!wakeups) return std::unexpected(std::move(wakeups.error()));
  auto wait = make_wait_fd(buffers);
  if (!wait) return std::unexpected(std::move(wait.error()));
  return Programs{std::make_unique<State>(State{.skeleton = std::move(skeleton),
                                                .lifecycle = std::move(*lifecycle),
                                                .saved = std::move(*saved),
                                                .wakeups = std::move(*wakeups),
                                                .sched = std::move(buffers),
                                                .wait = std::move(*wait),
                                                .cpus = static_cast<std::uint32_t>(cpus),
                                                .uprobe_multi = uprobe_multi,
                                                .attach = options.attach,
                                                .attach_again = options.attach_again})};
}

Result<void> Programs::attach() {
  auto& programs = state_->skeleton->progs;
  auto& links = state_->skeleton->links;
  const std::array attachments{
      Attachment{programs.process_exec, &links.process_exec},
      Attachment{programs.process_fork, &links.process_fork},
      Attachment{programs.process_exit, &links.process_exit},
      Attachment{programs.ring_before_exec, &links.ring_before_exec},
      Attachment{programs.ring_before_thread_end, &links.ring_before_thread_end},
      Attachment{programs.ring_unmapped, &links.ring_unmapped},
      Attachment{programs.ring_announced, &links.ring_announced},
  };
  if (auto attached = attach_programs(attachments); !attached) return attached;
  return state_->attach_sched(attach_tracepoints);
}

Result<void> Programs::attach_sched() {
  return state_->attach_sched(state_->attach_again);
}

void Programs::detach_sched() {
  close_in_parallel(std::exchange(state_->sched_links, {}));
}

int Programs::lifecycle_fd() const {
  return bpf_map__fd(state_->skeleton->maps.lifecycle);
}

int Programs::sched_fd() const {
  return state_->wait.get();
}

void Programs::read_lifecycle(const LifecycleConsumer& consumer) {
  state_->lifecycle.read<rtev_lifecycle>(max_lifecycle_records, consumer);
}

bool Programs::read_sched(const SchedConsumer& consumer, std::size_t max_records) {
  // Consumes the edges, in case the caller polled sched_fd() by other means than epoll_wait(). Before reading: records
  // that arrive later make a new edge.
  epoll_event seen[max_sched_buffers];
  if (state_->sched.count() > 0) ::epoll_wait(state_->wait.get(), seen, static_cast<int>(std::size(seen)), 0);

  bool complete = true;
  for (std::uint16_t buffer = 0; buffer < state_->sched.count(); ++buffer)
    complete &= state_->sched.read(buffer, max_records, [&](const rtev_sched& record) { consumer(buffer, record); });
  return complete;
}

void Programs::read_saved(const SavedConsumer& consumer) {
  state_->saved.read<rtev_saved>(max_saved_records, [&](const rtev_saved& record, std::span<const std::byte> payload) {
    if (record.bytes <= payload.size()) consumer(record, payload.first(record.bytes));
  });
}

bool Programs::has_unread_saved() const {
  // Readable means that there is a record, finished or not.
  pollfd saved{.fd = bpf_map__fd(state_->skeleton->maps.saved), .events = POLLIN, .revents = 0};
  return ::poll(&saved, 1, 0) > 0;
}

std::uint16_t Programs::sched_buffers() const {
  return state_->sched.count();
}

std::uint16_t Programs::sched_buffer_of(std::uint32_t cpu) const {
  return static_cast<std::uint16_t>(cpu % std::max<std::uint32_t>(state_->sched.count(), 1));
}

std::vector<SchedDrop> Programs::take_sched_drops(std::uint64_t now_ns) {
  return state_->dropped.take({state_->skeleton->bss->sched_drops, std::min<std::size_t>(state_->cpus, RTEV_MAX_CPUS)},
                              now_ns);
}

Result<void> Programs::track(pid_t tgid, const rtev_tracked& tracked) {
  if (bpf_map_update_elem(bpf_map__fd(state_->skeleton->maps.tracked), &tgid, &tracked, BPF_ANY) == 0) return {};
  const int error = errno;
  ++state_->untracked;
  return errno_error(error, "cannot track process", std::to_string(tgid));
}

void Programs::untrack(pid_t tgid) {
  bpf_map_delete_elem(bpf_map__fd(state_->skeleton->maps.tracked), &tgid);
  bpf_map_delete_elem(bpf_map__fd(state_->skeleton->maps.rings), &tgid);  // its words would never be asked for
}

void Programs::ring_opened(pid_t tgid, std::uint64_t announced_ns) {
  // Can fail only for lack of memory: then the ring is saved for nothing.
  bpf_map_update_elem(bpf_map__fd(state_->skeleton->maps.opened), &tgid, &announced_ns, BPF_ANY);
}

void Programs::ring_found(pid_t tgid, const rtev_ring& ring) {
  if (state_->skeleton->rodata->save_mode == RTEV_SAVE_OFF) return;
  if (bpf_map_update_elem(bpf_map__fd(state_->skeleton->maps.rings), &tgid, &ring, BPF_NOEXIST) == 0)
    ring_opened(tgid, ring.announced_ns);
}

bool Programs::is_latest_ring(pid_t tgid, std::uint64_t announced_ns) const {
  std::uint64_t latest_ns = 0;
  return bpf_map_lookup_elem(bpf_map__fd(state_->skeleton->maps.announced), &tgid, &latest_ns) != 0 ||
         latest_ns <= announced_ns;
}

std::uint64_t Programs::announcements() const {
  // After all words of rings that were read before: what a program writes follows its announcement.
  std::atomic_thread_fence(std::memory_order_acquire);
  return __atomic_load_n(&state_->skeleton->bss->announcements, __ATOMIC_ACQUIRE);
}

bool Programs::is_being_changed(int fd, FileUse use) const {
  rtev_open_file asked{
      .fd = static_cast<std::uint32_t>(fd), .is_to_be_mapped = use == FileUse::map, .zero = 0, .pad = 0, .address = 0};
  return run(state_->skeleton->progs.file_is_changing, asked).value_or(0) != 0;
}

void Programs::look_at_pages(std::span<PageRange> ranges) {
  static const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::span table = state_->skeleton->bss->page_ranges;
  // A range may take several entries.
  std::array<PageRange*, RTEV_MAX_PAGE_RANGES> parts;
  std::uint32_t count = 0;
  const auto look = [&] {
    rtev_page_count asked{.ranges = count};
    const auto is_unknown = [](const rtev_page_range& range) { return range.state == RTEV_PAGES_RETRY; };
    bool ran = true;
    for (int tries = 0; ran && count > 0; ++tries) {
      ran = run(state_->skeleton->progs.look_at_pages, asked).has_value();
      if (tries == max_look_retries || std::ranges::none_of(table.first(count), is_unknown)) break;
      std::this_thread::sleep_for(look_retry_interval);
    }
    for (std::uint32_t i = 0; i < count && ran; ++i)
      parts[i]->state = std::max(parts[i]->state, std::min(static_cast<PageState>(table[i].state), PageState::busy));
    count = 0;
  };
  for (PageRange& range : ranges) {
    range.state = PageState::ready;
    auto address = reinterpret_cast<std::uintptr_t>(range.address);
    for (const std::uintptr_t end = address + range.bytes; address < end;) {
      const std::uintptr_t until = std::min(end, (address / page_bytes + RTEV_MAX_PAGES_OF_RANGE) * page_bytes);
      parts[count] = &range;
      table[count++] = {.address = address, .bytes = static_cast<std::uint32_t>(until - address), .state = 0};
      address = until;
      if (count == table.size()) look();
    }
  }
  look();
}

rtev_mappings Programs::mappings(int fd) const {
  return check_mappings(mappings_program(), fd);
}

int Programs::mappings_program() const {
  return bpf_program__fd(state_->skeleton->progs.file_mappings);
}

Result<void> Programs::follow(pid_t tgid) {
  const std::uint8_t one = 1;
  if (bpf_map_update_elem(bpf_map__fd(state_->skeleton->maps.followed), &tgid, &one, BPF_ANY) != 0)
    return errno_error(errno, "cannot follow process", std::to_string(tgid));
  return {};
}

int Programs::followed_map_fd() const {
  return bpf_map__fd(state_->skeleton->maps.followed);
}

int Programs::threads_map_fd() const {
  return bpf_map__fd(state_->skeleton->maps.threads);
}

void Programs::look_at_cpus() {
  state_->wakeups.read<std::uint64_t>(max_wakeups, [](std::uint64_t, std::span<const std::byte>) {});
  const std::span cpus{state_->skeleton->bss->on_cpu, std::min<std::size_t>(state_->cpus, RTEV_MAX_CPUS)};
  auto& on_cpu = state_->on_cpu;
  on_cpu.clear();
  for (rtev_cpu_activity& cpu : cpus) {
    if (const std::uint32_t slot = std::atomic_ref{cpu.slot}.load(); slot != 0) on_cpu.push_back(slot);
  }
  std::ranges::sort(on_cpu);
}

RingActivity Programs::take_activity(std::uint32_t slot) {
  if (slot == 0 || slot >= RTEV_RING_SLOTS) return {.ran = true};  // better read for nothing than miss events
  const std::atomic_ref shared{state_->skeleton->bss->activity[slot]};
  const std::uint32_t news = shared.load() & ~std::uint32_t{RTEV_PART_FULL};
  const std::uint32_t seen = news != 0 ? shared.fetch_and(RTEV_PART_FULL) : 0;
  return {.ran = news != 0 || std::ranges::binary_search(state_->on_cpu, slot),
          .checked = (seen & RTEV_CHECKED) != 0,
          .checked_first = (seen & RTEV_CHECKED_FIRST) != 0,
          .fills_up = (seen & RTEV_FILLS_UP) != 0};
}

void Programs::begin_read(std::uint32_t slot) {
  if (slot == 0 || slot >= RTEV_RING_SLOTS) return;
  const std::atomic_ref shared{state_->skeleton->bss->activity[slot]};
  if ((shared.load() & RTEV_PART_FULL) != 0) shared.fetch_and(~std::uint32_t{RTEV_PART_FULL});
}

void Programs::wake_if_full() {
  std::uint32_t never = RTEV_WAKE_NEVER;
  std::atomic_ref{state_->skeleton->bss->reader_waits_for}.compare_exchange_strong(never, RTEV_WAKE_IF_FULL);
}

void Programs::wake_if_active() {
  std::atomic_ref{state_->skeleton->bss->reader_waits_for}.store(RTEV_WAKE_IF_ACTIVE);
}

int Programs::wakeup_fd() const {
  return bpf_map__fd(state_->skeleton->maps.wakeups);
}

Drops Programs::drops() const {
  Drops drops{};
  std::vector<std::uint64_t> per_cpu(state_->cpus);
  for (std::uint32_t stat = 0; stat < drops.size(); ++stat) {
    if (bpf_map_lookup_elem(bpf_map__fd(state_->skeleton->maps.stats), &stat, per_cpu.data()) != 0) continue;
    for (const auto count : per_cpu) drops[stat] += count;
  }
  drops[RTEV_STAT_SWITCH_DROPPED] = state_->dropped.switches();
  drops[RTEV_STAT_WAKEUP_DROPPED] = state_->dropped.wakeups();
  drops[RTEV_STAT_UNTRACKED] += state_->untracked;
  return drops;
}

std::map<pid_t, rtev_record_budget> Programs::budgets() const {
  const bpf_map* const map = state_->skeleton->maps.record_budgets;
  std::map<pid_t, rtev_record_budget> budgets;
  // The kernel begins again if the process was removed meanwhile.
  std::uint32_t tgid = 0, next = 0, left = bpf_map__max_entries(map);
  for (const std::uint32_t* key = nullptr; left > 0 && bpf_map_get_next_key(bpf_map__fd(map), key, &next) == 0;
       --left) {
    tgid = next;
    key = &tgid;
    rtev_record_budget budget;
    if (bpf_map_lookup_elem(bpf_map__fd(map), key, &budget) == 0) budgets[static_cast<pid_t>(tgid)] = budget;
  }
  return budgets;
}

bool Programs::uses_uprobe_multi() const {
  return state_->uprobe_multi;
}

Result<AttachedUprobes> Programs::probe(int file, std::uint32_t binary_id, const ProbePlan& plan, std::uint32_t) {
  const UprobeProgram program{.program = state_->skeleton->progs.runtime_function, .multi = state_->uprobe_multi};
  return state_->attach(request_for(program, file, binary_id, plan.sites));
}

}  // namespace rtev::kernel
