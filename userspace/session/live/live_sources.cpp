// SPDX-License-Identifier: MIT
#include "session/live/live_sources.hpp"

#include <malloc.h>
#include <poll.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/file_limit.hpp"
#include "ring/reader_access.hpp"

namespace rtev {
namespace {

/// After so much time between two reads the session was stopped, or idle.
constexpr std::uint64_t long_pause_ns = 20'000'000;

/// How long the stream waits for the inspection of new programs. Events that are delivered before their program is
/// named get the names of the newest OCaml; but whoever starts new programs all the time must not delay the events of
/// others.
constexpr std::uint64_t max_naming_ns = 60'000'000;

/// How long it may take to deliver what a user has staged: it delays what comes after. Where there are rings of several
/// users, and where there are not: bursts should find room then. At the end nothing comes after it.
constexpr std::uint64_t max_shared_staged_ns = 25'000'000, max_staged_ns = 100'000'000, max_drained_ns = 1'000'000'000;

/// Words of the shortest event. Words of one read of a ring while others wait: those of a ring of OCaml's default size.
constexpr std::uint64_t words_of_event = 2, shared_quantum_words = 1 << 16;

/// BPF wakes the thread not more often than this because rings fill up.
constexpr std::uint64_t min_wakeup_interval_ns = 500'000;

/// Events that are read and wait for rings that are not due: more of them would not stay in the CPU's cache. But so
/// many events a running ring may wait in any case: to look at rings for fewer costs more.
constexpr std::size_t max_waiting_events = 1 << 15, events_worth_a_look = 1 << 9;

/// Processes that one step of a scan asks about.
constexpr std::size_t scanned_at_once = 256;
constexpr std::uint64_t scan_interval_ns = 10'000'000'000, whole_scan_interval_ns = 300'000'000'000;

/// When to look whether a scan is done that has taken longer than that.
constexpr std::uint64_t busy_scan_interval_ns = 1'000'000'000;

/// Gives memory of bursts back to the kernel, of which the C library keeps more and more. Not each time that something
/// is freed: the next burst would have to fault it in again.
void free_unused_memory() {
  constexpr std::size_t kept_bytes = std::size_t{16} << 20;
  if (::mallinfo2().fordblks > 2 * kept_bytes) ::malloc_trim(kept_bytes);
}

DiscoveryOptions discovery_options(const LiveOptions& options, std::uint64_t start_ns) {
  DiscoveryOptions discovery = options.discovery;
  discovery.since_ns = start_ns;
  discovery.rings_memory = MemoryShares(options.memory_limit).rings;
  discovery.ring_descriptors = raise_file_limit() / 2;
  discovery.even_gone = options.ringless.has_value();
  return discovery;
}

/// Tells whether the programs of the scheduler are needed.
SchedAttachment::AnyLives any_lives(const LiveOptions& options, const ProcessTable& processes) {
  if (options.programs.sched == RTEV_SCHED_ALL) return [] { return true; };
  return [&processes] {
    return std::ranges::any_of(processes.processes(),
                               [](const TracedProcess& process) { return process.index || process.has_ring; });
  };
}

/// Which scheduler records to stage; empty for all.
SchedStager::Traces traced_only(const LiveOptions& options, const ProcessTable& processes) {
  const ProcessFilter& filter = options.discovery.filter;
  if (options.programs.sched == RTEV_SCHED_ALL || (filter.pids.empty() && filter.name_globs.empty())) return {};
  return [&processes](std::int32_t pid) { return processes.traces(pid); };
}

/// How long the end may wait to learn whether programs that aborted were OCaml programs.
constexpr std::uint64_t inspection_timeout_ns = 500'000'000;

/// How long the end may wait for the peak memory of programs that continue.
constexpr std::uint64_t peak_memory_timeout_ns = 200'000'000;

/// How long the end may wait for the code that the last stacks were in.
constexpr std::uint64_t naming_stacks_timeout_ns = 500'000'000;

/// How long reading what is left may take at the end.
constexpr std::uint64_t drain_timeout_ns = 1'000'000'000;

/// How long images that ended wait for room for their events, and how many of them.
constexpr std::uint64_t max_end_wait_ns = 500'000'000;
constexpr std::size_t max_waiting_ends = 256;

constexpr std::array<std::string_view, RTEV_STAT_COUNT> drop_names = {"switch", "wakeup", "exec",      "fork", "exit",
                                                                      "ring",   "probe",  "untracked", "save"};

}  // namespace

Result<AttachedPrograms> AttachedPrograms::load(const LiveOptions& options) {
  // Before programs are loaded: on a busy host that takes seconds otherwise.
  raise_thread_priority(options.priority);
  auto programs = kernel::Programs::load(options.programs);
  if (!programs) return std::unexpected(std::move(programs.error()));
  std::optional<kernel::RinglessPrograms> ringless;
  if (options.ringless) {
    kernel::RinglessOptions wanted = *options.ringless;
    wanted.pids = options.discovery.filter.pids;
    wanted.attach = options.programs.attach;
    if (options.programs.follow) wanted.followed_map_fd = programs->followed_map_fd();
    auto loaded = kernel::RinglessPrograms::load(wanted);
    if (!loaded) return std::unexpected(std::move(loaded.error()));
    ringless = std::move(*loaded);
  }
  std::optional<kernel::StackPrograms> stacks;
  KernelSymbols kernel_symbols;
  if (options.stacks) {
    kernel::StackOptions wanted = *options.stacks;
    wanted.attach = options.programs.attach;
    wanted.threads_map_fd = programs->threads_map_fd();
    auto loaded = kernel::StackPrograms::load(wanted);
    if (!loaded) return std::unexpected(std::move(loaded.error()));
    stacks = std::move(*loaded);
    kernel_symbols = KernelSymbols::load();
  }
  // Subscribe first, scan second: what starts in between is seen twice, and known to be the same.
  if (auto attached = programs->attach(); !attached) return std::unexpected(std::move(attached.error()));
  if (stacks) {
    if (auto attached = stacks->attach(); !attached) return std::unexpected(std::move(attached.error()));
  }
  return AttachedPrograms{.programs = std::move(*programs),
                          .ringless = std::move(ringless),
                          .stacks = std::move(stacks),
                          .kernel_symbols = std::move(kernel_symbols)};
}

LiveSources::LiveSources(const LiveOptions& options, const StreamParts& stream, AttachedPrograms attached,
                         const helper::HelperProcess& helper)
    : stream_(stream),
      programs_(std::move(attached.programs)),
      ringless_programs_(std::move(attached.ringless)),
      stack_programs_(std::move(attached.stacks)),
      probes_(
          programs_, kernel::AttachPolicy::at_once, [this](int fd) { return programs_.mappings(fd); },
          [this](std::vector<FileLinks> files) { return give_links(std::move(files)); }),
      queries_(helper, helper::Priority::raised, &stream_.tasks),
      lifecycle_queries_(helper, helper::Priority::real_time),
      code_queries_(stack_programs_ ? std::make_unique<helper::HelperQueries>(helper, helper::Priority::lowered,
                                                                              helper::limits_for_code(), &stream_.tasks)
                                    : nullptr),
      processes_(is_running, stream_.registry),
      stacks_(stack_programs_ ? std::make_unique<StackStager>(StackStager::Context{.source = *stack_programs_,
                                                                                   .readers = queries_,
                                                                                   .builders = *code_queries_,
                                                                                   .processes = processes_,
                                                                                   .registry = stream_.registry,
                                                                                   .timeline = stream_.timeline},
                                                              std::move(attached.kernel_symbols))
                              : nullptr),
      ringless_(
          ringless_programs_
              ? std::make_unique<Ringless>(
                    *ringless_programs_, *ringless_programs_,
                    Ringless::Context{
                        .registry = stream_.registry,
                        .timeline = stream_.timeline,
                        .events = *this,
                        .processes = processes_,
                        .tasks = stream_.tasks,
                        .run_later = [this](std::function<bool()> task) { inspector_.run_until_done(std::move(task)); },
                        .start_ns = stream_.start_ns,
                        .care = {
                            .check = [this](int fd) { return programs_.mappings(fd); },
                            .give = [this](std::vector<FileLinks> files) { return give_links(std::move(files)); }}},
                    options.discovery.filter)
              : nullptr),
      sched_attachment_(
          programs_, [this](std::function<void()> task) { inspector_.run_later(std::move(task)); },
          any_lives(options, processes_), stream_.tasks, monotonic_ns()),
      inspector_(
          cache_,
          [this](int fd, const std::shared_ptr<const Binary>& binary, std::uint32_t user) {
            return probe(fd, binary, user);
          },
          [this](int fd, FileUse use) { return programs_.is_being_changed(fd, use); }),
      ring_stager_(
          stream_.registry, stream_.timeline,
          [this](std::uint64_t time_ns, ProcessIndex process) {
            on_process(time_ns, ProcessAction::stop, {.process = process, .peer = 0, .detail = 0});
          },
          options.unused),
      rings_([this](const Batch& batch) { ring_stager_.stage(batch); }, [this](uid_t user) { return room_for(user); },
             static_cast<std::uint64_t>(options.max_delay.count())),
      kernel_(
          programs_, programs_,
          [this](std::int32_t pid) {
            sched_attachment_.begin();
            if (stacks_) stacks_->add_process(pid);
          },
          [this](std::uint32_t binary_id) {
            // Probes are for programs whose events cannot be switched on.
            if (ringless_ && (!enabling_ || enabling_->has_failed())) ringless_->consider(binary_id);
          },
          MemoryShares(options.memory_limit).saved_rings),
      discovery_({.queries = queries_,
                  .registry = stream_.registry,
                  .processes = processes_,
                  .cache = cache_,
                  .inspector = inspector_,
                  .events = *this,
                  .kernel = kernel_,
                  .tasks = stream_.tasks},
                 discovery_options(options, stream_.start_ns)),
      sched_(programs_, stream_.timeline, traced_only(options, processes_)),
      lifecycle_(lifecycle_queries_,
                 {.fd = programs_.lifecycle_fd(),
                  .read = [this](const LifecycleReader::Consumer& consumer) { programs_.read_lifecycle(consumer); },
                  .ring_opened = [this](std::int32_t pid,
                                        std::uint64_t announced_ns) { programs_.ring_opened(pid, announced_ns); }}),
      max_delay_ns_(static_cast<std::uint64_t>(options.max_delay.count())),
      collecting_(stream_.tasks),
      scanning_(stream_.tasks, [this](std::uint64_t now_ns) { scan_again(now_ns); }) {
  if (options.stacks && options.stacks->allocations)
    allocation_probes_.emplace(
        *stack_programs_, kernel::AttachPolicy::at_once, [this](int fd) { return programs_.mappings(fd); },
        [this](std::vector<FileLinks> files) { return give_links(std::move(files)); });
  if (enable::Enabler* const enabler = options.enabler)
    enabling_.emplace(
        Enabling::Channel{
            .event_fd = enabler->event_fd(),
            .ask = [enabler](const auto& request) { return enabler->ask(request, enable::Enabler::Wait::no); },
            .take = [enabler] { return enabler->take(); }},
        stream_.registry, stream_.tasks,
        [this](ProcessIndex process, EnableResult result) { on_enabled(process, result); });
}

LiveSources::~LiveSources() = default;

std::vector<FileLinks> LiveSources::give_links(std::vector<FileLinks> files) const {
  return close_links_in_background(programs_.mappings_program(), std::move(files));
}

/// On the inspector's thread. False if a file's mappings do not allow it now.
bool LiveSources::probe(int fd, const std::shared_ptr<const Binary>& binary, std::uint32_t user) {
  kernel::ProbePlan plan;
  for (const ProbePoint& point : binary->runtime.probes)
    plan.sites.push_back({.function = static_cast<std::uint8_t>(point.function), .file_offset = point.file_offset});
  const kernel::ProbedBinary probed{
      .id = binary->id, .user = user, .in_use = [known = std::weak_ptr(binary)] { return BinaryCache::in_use(known); }};
  bool is_done = probes_.add(fd, probed, std::move(plan));
  if (const auto& site = binary->runtime.stack_sites.allocation_offset; allocation_probes_ && site)
    is_done = allocation_probes_->add(fd, probed, {.sites = {{.function = 0, .file_offset = *site}}}) && is_done;
  return (!ringless_ || ringless_->prepare(fd, binary->runtime, probed)) && is_done;
}

std::uint64_t LiveSources::longest_staged_ns() const {
  if (rings_.has_several_users()) return max_shared_staged_ns;
  return drains_ ? max_drained_ns : max_staged_ns;
}

/// The stream is in order of time: what one user has staged delays what others write after it.
RingPoller::Room LiveSources::room_for(uid_t user) const {
  if (!stream_.timeline.has_room(user)) return RingPoller::no_room;
  const std::uint64_t words = stream_.output.room(user, longest_staged_ns()) * words_of_event;
  const bool one_quantum = rings_.has_several_users() || stream_.output.has_backlog();
  return {.words = one_quantum ? std::min(words, shared_quantum_words) : words, .one_quantum = one_quantum};
}

/// To ask all processes of a host with many takes a moment: done seldom, and where records were dropped.
void LiveSources::begin_scan(std::uint64_t now_ns) {
  const kernel::Drops drops = programs_.drops();
  const std::uint64_t dropped = drops[RTEV_STAT_EXEC_DROPPED] + drops[RTEV_STAT_FORK_DROPPED] +
                                drops[RTEV_STAT_EXIT_DROPPED] + drops[RTEV_STAT_RING_DROPPED];
  const bool is_due = !last_whole_scan_ns_ || now_ns - *last_whole_scan_ns_ >= whole_scan_interval_ns;
  const bool is_whole = std::exchange(dropped_records_, dropped) != dropped || is_due;
  if (is_whole) last_whole_scan_ns_ = now_ns;
  discovery_.begin_scan(is_whole ? ScanScope::all : ScanScope::unknown);
  scanning_.at(now_ns + scan_interval_ns);
}

void LiveSources::scan_some() {
  discovery_.scan_some(scanned_at_once);
}

/// For processes that were missed.
void LiveSources::scan_again(std::uint64_t now_ns) {
  if (discovery_.is_scanning()) return scanning_.at(now_ns + busy_scan_interval_ns);
  begin_scan(now_ns);
  free_unused_memory();
  // Attaching waits for the kernel's grace period.
  inspector_.run_later(
      [this, now_ns, in_use = processes_.binaries_in_use()] { probes_.detach_unused(in_use, now_ns); });
  if (ringless_) ringless_->detach_unused(now_ns);
}

LiveSources::Collected LiveSources::collect() {
  // After a long stop, let the lifecycle reader catch up first: it may not have run either. Else the ring of a program
  // that ended long ago looks like one in use, and its file may belong to the next program by now.
  if (monotonic_ns() - last_collect_ns_ > long_pause_ns) lifecycle_.catch_up();
  const std::uint64_t now = monotonic_ns();
  last_collect_ns_ = now;
  // Records that the lifecycle reader is looking up are not taken yet.
  const auto records_wait_since = lifecycle_.busy_since();
  const std::uint64_t taken_until = std::max(std::min(now, records_wait_since.value_or(forever)), now - max_hold_ns);
  const std::uint64_t records_complete_until = lifecycle_.has_caught_up() ? now : 0;
  const bool any_probed = take_lifecycle_events();
  queries_.process(now);
  if (code_queries_) code_queries_->process(now);
  discovery_.tick(now, records_complete_until, records_wait_since);
  finish_ended(now);
  kernel_.collect_saved_rings();
  if (enabling_) enabling_->take_answers(monotonic_ns());
  take_enabled_by_others();
  if (ringless_) ringless_->tick({.now_ns = now, .records_taken_until_ns = taken_until});
  sched_.stage(monotonic_ns(), stream_.output.room(Timeline::no_user, longest_staged_ns()));
  if (stacks_) stacks_->stage(monotonic_ns());
  poll_rings(now);
  any_runs_ = rings_.next_poll_ns() || any_probed;
  collecting_.at(rings_.next_poll_ns());
  if (any_probed) collecting_.by(now + max_delay_ns_);
  if (const auto look_ns = stacks_ ? stacks_->next_look_ns() : std::nullopt) collecting_.by(*look_ns);
  // Rings that fill up before BPF is asked again are found by looking.
  if (any_runs_ && now != armed_ns_) collecting_.by(armed_ns_ + min_wakeup_interval_ns);
  return {.now_ns = now, .read_until_ns = std::min(taken_until, rings_.read_until_ns())};
}

void LiveSources::poll_rings(std::uint64_t now_ns) {
  // Not for each part of a ring that is filled: whoever writes what looks like one could keep this thread busy.
  if (now_ns - armed_ns_ >= min_wakeup_interval_ns) {
    programs_.wake_if_full();
    armed_ns_ = now_ns;
  }
  programs_.look_at_cpus();
  const std::size_t may_wait = std::max(max_waiting_events, rings_.running() * events_worth_a_look);
  rings_.poll(now_ns, stream_.timeline.staged_events() < may_wait ? RingPoller::Which::due : RingPoller::Which::active,
              {.take =
                   [this, watched = sched_attachment_.is_attached()](std::uint32_t slot) {
                     kernel::RingActivity activity = programs_.take_activity(slot);
                     activity.watched = watched;
                     return activity;
                   },
               .begin_read = [this](std::uint32_t slot) { programs_.begin_read(slot); }});
}

/// True if there were records of ring-less probes.
bool LiveSources::take_lifecycle_events() {
  std::vector<ResolvedRecord> events = lifecycle_.take();
  has_news_ = !events.empty();
  // After take(): then all records of the probes of a process whose end is among these events are read.
  const bool any_probed = ringless_ && ringless_->read();
  for (ResolvedRecord& event : events) {
    if (ringless_) ringless_->place_until(event.record.time_ns);
    discovery_.take(std::move(event));
  }
  return any_probed;
}

Watermark::Holds LiveSources::holds(std::uint64_t read_until_ns) {
  auto unnamed_since = discovery_.unnamed_since(read_until_ns);
  // Likewise for stacks whose code is being looked at.
  if (stacks_) unnamed_since = earliest(unnamed_since, stacks_->waiting_since());
  if (unnamed_since) unnamed_since = std::max(*unnamed_since, read_until_ns - max_naming_ns - max_delay_ns_);
  // While switches are not reported, any thread may have been interrupted.
  const std::uint64_t oldest = Watermark::oldest_interruption(read_until_ns);
  return {.interrupted_since = sched_attachment_.is_attached() ? sched_.interrupted_since(oldest) : oldest,
          .unopened_since = discovery_.unopened_since(),
          .behind_since = earliest(sched_.behind_since(), rings_.behind_since_ns()),
          .unattributed_since = earliest(unnamed_since, ringless_ ? ringless_->waiting_since() : std::nullopt)};
}

std::vector<int> LiveSources::event_fds() const {
  std::vector<int> fds{lifecycle_.event_fd(), queries_.event_fd(), programs_.sched_fd(), inspector_.event_fd(),
                       programs_.wakeup_fd()};
  if (ringless_programs_) fds.push_back(ringless_programs_->fd());
  if (stack_programs_) {
    fds.push_back(stack_programs_->fd());
    fds.push_back(code_queries_->event_fd());
  }
  if (enabling_) fds.push_back(enabling_->event_fd());
  if (enabled_watch_.event_fd() >= 0) fds.push_back(enabled_watch_.event_fd());
  return fds;
}

void LiveSources::await_inspected(int timeout_ms) const {
  std::array<pollfd, 2> wait{{{.fd = inspector_.event_fd(), .events = POLLIN, .revents = 0},
                              {.fd = queries_.event_fd(), .events = POLLIN, .revents = 0}}};
  ::poll(wait.data(), wait.size(), timeout_ms);
}

void LiveSources::wake_if_active() {
  programs_.wake_if_active();
  if (ringless_programs_) ringless_programs_->arm_wakeup();
}

void LiveSources::on_process(std::uint64_t time_ns, ProcessAction action, const ProcessRecord& record) {
  if (action == ProcessAction::unreadable) ++unreadable_[static_cast<Unreadable>(record.detail)];
  stream_.push(time_ns, action, record);
  if (!enabling_) return;
  if (action == ProcessAction::found)
    enabling_->consider(record.process, monotonic_ns());
  else if (action == ProcessAction::exec)
    enabling_->consider(record.process, time_ns + Enabling::start_delay_ns);
  else if (action == ProcessAction::fork)
    on_fork(record, time_ns + Enabling::start_delay_ns);
}

void LiveSources::on_fork(const ProcessRecord& record, std::uint64_t due_ns) {
  const TracedProcess* const parent = processes_.find(record.peer);
  if (parent != nullptr && parent->index)
    enabling_->consider_child(record.process, *parent->index, due_ns);
  else
    enabling_->consider(record.process, due_ns);
}

void LiveSources::on_enabled(ProcessIndex process, EnableResult result) {
  ProcessInfo& info = stream_.registry.process(process);
  const std::uint64_t now = monotonic_ns();
  on_process(now, ProcessAction::enable, {.process = process, .peer = 0, .detail = static_cast<std::int64_t>(result)});
  if (result == EnableResult::resumed) {
    info.ring = RingState::active;
    on_process(now, ProcessAction::resume, {.process = process, .peer = 0, .detail = 0});
  }
  if (is_good(result) || !ringless_) return;
  if (const auto ringless = processes_.ringless_process(info.pid)) ringless_->consider(ringless->binary);
}

/// Says why a program begins to write events, or writes none any more.
void LiveSources::take_enabled_by_others() {
  for (const auto& [pid, start_ticks, enabled] : enabled_watch_.take()) {
    const TracedProcess* const process = processes_.find(pid, start_ticks);
    if (process == nullptr || !process->index) continue;
    if (enabled == Enabled::on) {
      if (!enabling_) on_enabled(*process->index, EnableResult::done);
      continue;
    }
    stream_.registry.process(*process->index).ring = RingState::paused;
    on_enabled(*process->index, EnableResult::switched_off);
    on_process(monotonic_ns(), ProcessAction::pause, {.process = *process->index, .peer = 0, .detail = 0});
  }
}

void LiveSources::on_ring(ProcessIndex process, std::uint32_t slot, std::shared_ptr<RingReader> ring) {
  const TracedProcess* const owner = processes_.find(stream_.registry.process(process).pid);
  const uid_t user = owner != nullptr ? owner->user : 0;
  stream_.timeline.set_owner(slot, user);
  rings_.add(slot, process, user, std::move(ring), monotonic_ns());
  if (ringless_) ringless_->on_ring(process, monotonic_ns());
  ring_stager_.add(slot);
}

void LiveSources::on_image_end(const ImageEnd& end) {
  const std::uint64_t now = monotonic_ns();
  if (enabling_) enabling_->forget(end.process);
  if (stacks_) {
    // Its last stacks, while its process is known.
    stacks_->stage(now);
    stacks_->forget(end.process);
  }
  sched_attachment_.end(now);
  for (const std::uint32_t slot : end.slots) rings_.seal(slot, end.time_ns);
  ended_.push_back({.end = end, .deadline_ns = now + max_end_wait_ns});
  finish_ended(now);
}

/// Many programs may end at once, with more events than there is room for.
void LiveSources::finish_ended(std::uint64_t now_ns) {
  std::erase_if(ended_, [&, waiting = ended_.size()](const Ended& image) mutable {
    bool is_read = true;
    for (const std::uint32_t slot : image.end.slots) is_read &= rings_.read_last(slot, now_ns);
    const bool has_time = !drains_ && now_ns < image.deadline_ns && waiting <= max_waiting_ends;
    if (!is_read && has_time) return false;
    finish(image.end, now_ns);
    --waiting;
    return true;
  });
}

void LiveSources::finish(const ImageEnd& end, std::uint64_t now) {
  ProcessInfo& info = stream_.registry.process(end.process);
  info.words = {};
  info.domains = 0;
  for (const std::uint32_t slot : end.slots) {
    rings_.finish(slot, now, info, [&] {
      return slot == end.slots.back() ? kernel_.take_saved_ring(info.pid, end.announced_ns, end.announced_ns)
                                      : std::nullopt;
    });
    ring_stager_.forget(slot);
  }
  kernel_.forget_saved_rings(info.pid, end.time_ns);
  std::vector<std::uint32_t> slots = end.slots;
  if (ringless_) ringless_->end_image(end.process, {.time_ns = end.time_ns, .by_exec = end.by_exec}, slots);
  stream_.output.add_ended({.time_ns = std::max(end.time_ns, now), .process = end.process, .slots = std::move(slots)});
}

void LiveSources::drain(Rest rest) {
  drains_ = true;
  enabled_watch_.stop();
  lifecycle_.stop();
  const std::uint64_t end = monotonic_ns();
  take_lifecycle_events();
  discovery_.tick(end, end);
  finish_ended(end);
  while (discovery_.unnamed_since(monotonic_ns()) ||
         (discovery_.exits().inspects_aborted() && monotonic_ns() < end + inspection_timeout_ns)) {
    await_inspected(1);
    discovery_.tick(monotonic_ns(), end);
    poll_rings(monotonic_ns());
  }
  processes_.ask_peak_memory(queries_);
  const std::uint64_t peak_memory_deadline = monotonic_ns() + peak_memory_timeout_ns;
  for (std::uint64_t now = 0; !queries_.is_idle() && now < peak_memory_deadline; now = monotonic_ns()) {
    await_inspected(1);
    queries_.process(monotonic_ns());
    poll_rings(monotonic_ns());
  }
  sched_.stage(monotonic_ns(), forever);
  end_stacks();
  rings_.finish_all(end, rest == Rest::is_read ? end + drain_timeout_ns : end);
  rings_.update(stream_.registry);
  if (ringless_) ringless_->finish(end);
}

/// Takes the last stacks. What they take to be named may not be known yet.
void LiveSources::end_stacks() {
  if (!stacks_) return;
  stacks_->stage(monotonic_ns());
  stacks_->end_sleeps(monotonic_ns());
  const std::uint64_t deadline = monotonic_ns() + naming_stacks_timeout_ns;
  while (stacks_->has_waiting() && !(queries_.is_idle() && code_queries_->is_idle()) && monotonic_ns() < deadline) {
    std::array answered{pollfd{.fd = queries_.event_fd(), .events = POLLIN, .revents = 0},
                        pollfd{.fd = code_queries_->event_fd(), .events = POLLIN, .revents = 0}};
    ::poll(answered.data(), answered.size(), 1);
    queries_.process(monotonic_ns());
    code_queries_->process(monotonic_ns());
  }
  stacks_->give_up();
}

void LiveSources::add_figures(RunSummary& summary) const {
  add_announcers(summary);  // before the sum of their drops, which go on
  const kernel::Drops drops = programs_.drops();
  // With --sched off no switch was traced that could have been dropped.
  const std::size_t first = programs_.sched_buffers() > 0 ? 0 : std::size_t{RTEV_STAT_EXEC_DROPPED};
  for (std::size_t kind = first; kind < drops.size(); ++kind)
    summary.drops.push_back({.kind = std::string(drop_names[kind]), .count = drops[kind]});
  if (stacks_) {
    const auto& [on_cpu, off_cpu, allocation] = stacks_->dropped();
    summary.drops.push_back({.kind = std::string(RunSummary::sample), .count = on_cpu + off_cpu + allocation});
    summary.drops.push_back({.kind = std::string(RunSummary::sample_off_cpu), .count = off_cpu});
    summary.drops.push_back({.kind = std::string(RunSummary::sample_allocation), .count = allocation});
    summary.drops.push_back({.kind = "tables", .count = stacks_->left_out_tables()});
    summary.drops.push_back({.kind = std::string(RunSummary::unsampled), .count = stacks_->unsampled()});
  }
  if (ringless_) {
    const Ringless::Figures figures = ringless_->figures();
    summary.drops.push_back({.kind = "probed", .count = figures.dropped + figures.unplaced});
    summary.drops.push_back({.kind = std::string(RunSummary::limited), .count = figures.gaps});
    summary.drops.push_back({.kind = std::string(RunSummary::unprobed), .count = ringless_->unprobed().processes()});
  }
  // Some processes that do not answer are not known, and have no event: they are what is left.
  std::uint64_t no_answer = discovery_.unreadable();
  for (const auto& [why, kind] : {std::pair(Unreadable::file_system, RunSummary::ring_file_system),
                                  std::pair(Unreadable::memory, RunSummary::ring_memory),
                                  std::pair(Unreadable::other_user, RunSummary::ring_other_user),
                                  std::pair(Unreadable::too_large, RunSummary::ring_too_large)}) {
    const auto found = unreadable_.find(why);
    const std::uint64_t count = found != unreadable_.end() ? found->second : 0;
    summary.drops.push_back({.kind = std::string(kind), .count = count});
    no_answer -= std::min(no_answer, count);
  }
  summary.drops.push_back({.kind = std::string(RunSummary::ring_no_answer), .count = no_answer});
  summary.rings_missed = discovery_.rings_missed() + discovery_.unreadable() + rings_.taken_over();
}

void LiveSources::add_announcers(RunSummary& summary) const {
  for (const auto& [pid, budget] : programs_.budgets()) {
    if (budget.dropped == 0) continue;
    summary.announcers.push_back(
        {.pid = pid, .comm = {budget.comm, ::strnlen(budget.comm, RTEV_COMM)}, .dropped = budget.dropped});
  }
}

}  // namespace rtev
