// SPDX-License-Identifier: MIT
#include "session/rootless/rootless_sources.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/clock.hpp"
#include "base/file_limit.hpp"
#include "inspect/proc_lines.hpp"

namespace rtev {
namespace {

/// How old events may be when they are read. Where a program runs another one under its pid, that one overwrites what
/// was not read.
constexpr std::chrono::nanoseconds max_delay = std::chrono::milliseconds(10);

/// How soon to try again what could not be done at once.
constexpr std::uint64_t end_check_interval_ns = 500'000;

/// How long it may take to deliver what is staged.
constexpr std::uint64_t max_rootless_staged_ns = 100'000'000, max_rootless_drained_ns = 1'000'000'000;
constexpr std::uint64_t event_words = 2;

/// At the end: how long rings may take that were just found, what is left in rings, and answers about memory.
constexpr std::uint64_t last_rings_timeout_ns = 500'000'000, rootless_drain_timeout_ns = 1'000'000'000,
                        peak_memory_timeout_ns = 200'000'000, naming_stacks_timeout_ns = 500'000'000;

/// Rings of one image; a process with more is not an OCaml program.
constexpr std::size_t max_image_rings = 16;

/// Under which kinds the summary counts rings that are not read.
constexpr auto unreadable_kinds =
    std::to_array<std::pair<Unreadable, std::string_view>>({{Unreadable::file_system, RunSummary::ring_file_system},
                                                            {Unreadable::no_answer, RunSummary::ring_no_answer},
                                                            {Unreadable::memory, RunSummary::ring_memory},
                                                            {Unreadable::other_user, RunSummary::ring_other_user},
                                                            {Unreadable::too_large, RunSummary::ring_too_large}});

DiscoveryOptions rootless_discovery(const SessionOptions& options, std::uint64_t start_ns) {
  DiscoveryOptions discovery = options.discovery;
  discovery.since_ns = start_ns;
  discovery.rings_memory = MemoryShares(options.memory_limit).rings;
  discovery.ring_descriptors = raise_file_limit() / 2;
  return discovery;
}

}  // namespace

RootlessSources::RootlessSources(const SessionOptions& options, const StreamParts& stream,
                                 const helper::HelperProcess& helper, std::optional<FollowedCommand> followed,
                                 bool samples_threads, std::unique_ptr<kernel::StackSource> stacks)
    : stream_(stream),
      options_(rootless_discovery(options, stream.start_ns)),
      followed_(std::move(followed)),
      queries_(helper, helper::Priority::raised, &stream_.tasks),
      processes_(is_running, stream_.registry),
      names_(queries_, processes_, stream_.registry,
             {.on_ocaml =
                  [this](TracedProcess& process) {
                    if (!process.index) add_to_stream(process);
                    if (stacks_) stacks_->add_process(process.pid);
                  },
              .on_other =
                  [this](std::int32_t pid) {
                    watched_.erase(pid);
                    processes_.erase(pid);
                  }}),
      ring_stager_(
          stream_.registry, stream_.timeline,
          [this](std::uint64_t time_ns, ProcessIndex process) {
            report(time_ns, ProcessAction::stop, {.process = process, .peer = 0, .detail = 0});
          },
          options.unused),
      rings_([this](const Batch& batch) { ring_stager_.stage(batch); }, [this](uid_t user) { return room_for(user); },
             static_cast<std::uint64_t>(std::min(options.max_delay, max_delay).count())),
      context_{.queries = queries_,
               .registry = stream_.registry,
               .processes = processes_,
               .cache = names_.cache(),
               .inspector = names_.inspector(),
               .events = no_events_,
               .kernel = *this,
               .tasks = stream_.tasks},
      opener_(context_, options_),
      finder_(queries_, followed_, options_.filter.pids,
              [this](const OpenedRing& ring, std::int32_t pid) {
                const auto owner = opener_.owner(ring);
                return owner && stream_.registry.process(*owner).pid == pid;
              }),
      ends_(::epoll_create1(EPOLL_CLOEXEC)),
      stack_source_(std::move(stacks)),
      collecting_(stream_.tasks) {
  if (stack_source_) {
    code_queries_ = std::make_unique<helper::HelperQueries>(helper, helper::Priority::lowered,
                                                            helper::limits_for_code(), &stream_.tasks);
    stacks_ = std::make_unique<StackStager>(StackStager::Context{.source = *stack_source_,
                                                                 .readers = queries_,
                                                                 .builders = *code_queries_,
                                                                 .processes = processes_,
                                                                 .registry = stream_.registry,
                                                                 .timeline = stream_.timeline},
                                            KernelSymbols());
  }
  if (!samples_threads) return;
  // The watermark stays behind by more than the time between two samples.
  sampler_.emplace(stream_.tasks, [this](std::uint16_t index, std::uint64_t time_ns, const SchedSwitch& change) {
    const Source source{0, static_cast<std::uint16_t>(first_sched_stream + index)};
    stream_.timeline.push(time_ns, source, EventKind::sched_switch, 0, change);
  });
}

Sources::Collected RootlessSources::collect() {
  const std::uint64_t now = monotonic_ns();
  has_news_ = false;
  queries_.process(now);
  if (stacks_) {
    code_queries_->process(now);
    stacks_->stage(now);
  }
  names_.tick(now);
  find_ends();  // before rings: one that a process made before its end is found
  finder_.look(now, drains_);
  open_found(now);
  end_processes();
  finish_ended(now);
  poll_rings(now);
  find_successors(now);
  collecting_.at(earliest(earliest(rings_.next_poll_ns(), names_.next_tick_ns()), finder_.next_look_ns(now)));
  if (const auto look_ns = stacks_ ? stacks_->next_look_ns() : std::nullopt) collecting_.by(*look_ns);
  if (!ended_.empty()) collecting_.by(now + end_check_interval_ns);
  return {.now_ns = now, .read_until_ns = std::min(now, rings_.read_until_ns())};
}

void RootlessSources::open_found(std::uint64_t now_ns) {
  // What is not erased waits: the process is not known yet, or the header not valid.
  std::erase_if(finder_.found(), [&](FoundRings& found) { return found.view && open(found, now_ns); });
}

/// True if it is done with.
bool RootlessSources::open(FoundRings& found, std::uint64_t now_ns) {
  const auto watched = watched_.find(found.pid);
  const bool has_ended = !found.view->stat || drains_ || (watched != watched_.end() && watched->second.ended_ns != 0);
  TracedProcess* const process = process_of(found, now_ns);
  if (process == nullptr) return true;
  if (!process->index) return found.rings.empty();
  if (const auto unsafe = std::ranges::find_if(found.rings, [](const OpenedRing& ring) { return !ring.fd; });
      unsafe != found.rings.end()) {
    refuse(*process, *unsafe, unsafe->of_other_user ? Unreadable::other_user : Unreadable::file_system, now_ns);
    return true;
  }
  if (process->rings.slots.size() >= max_image_rings) return true;
  const auto opened = opener_.open(*process->index, process->user, found.rings, {.is_new = found.is_new});
  for (const RingOpener::Ring& ring : opened) add_ring(*process, ring, now_ns);
  if (const auto refusal = opener_.refusal()) {
    refuse(*process, found.rings.front(), *refusal, now_ns);
    return true;
  }
  ++found.tries;
  return has_ended || !opener_.not_ready();
}

void RootlessSources::add_ring(TracedProcess& process, const RingOpener::Ring& ring, std::uint64_t now_ns) {
  process.rings.files.push_back(ring.file);
  process.rings.slots.push_back(ring.slot);
  watched_[process.pid].rings.push_back(ring.reader);
  ProcessInfo& info = stream_.registry.process(*process.index);
  info.ring = RingState::active;
  info.ring_path = ring.opened->path;
  if (info.family_source == FamilySource::assumed && !ring.reader->layout().has_names) {
    // Only OCaml 5.0 leaves no room for the names of user events.
    info.version = "5.0";
    info.family = Family::before_5_3;
    info.family_source = FamilySource::ring;
  }
  // The first one began with its program, about.
  const bool is_first = process.rings.slots.size() == 1;
  const std::uint64_t began = is_first ? std::max(process.since_ns, now_ns - max_age_ns) : now_ns;
  watched_[process.pid].last_ring_ns = began;
  report(began, ProcessAction::ring, {.process = *process.index, .peer = 0, .detail = ring.reader->layout().rings});
  stream_.timeline.set_owner(ring.slot, process.user);
  rings_.add(ring.slot, *process.index, process.user, ring.reader, now_ns);
  ring_stager_.add(ring.slot);
}

void RootlessSources::refuse(TracedProcess& process, const OpenedRing& ring, Unreadable why, std::uint64_t now_ns) {
  ProcessInfo& info = stream_.registry.process(*process.index);
  if (info.ring != RingState::none) return;
  info.ring = RingState::unreadable;
  info.ring_path = ring.path;
  ++unreadable_[why];
  report(now_ns, ProcessAction::unreadable,
         {.process = *process.index, .peer = 0, .detail = static_cast<std::int64_t>(why)});
}

void RootlessSources::poll_rings(std::uint64_t now_ns) {
  rings_.poll(now_ns, RingPoller::Which::due,
              {.take = [](std::uint32_t) { return kernel::RingActivity{.ran = true}; }});
}

/// Many programs may end at once, with more events than there is room for.
void RootlessSources::finish_ended(std::uint64_t now_ns) {
  std::erase_if(ended_, [&, waiting = ended_.size()](const Ended& image) mutable {
    bool is_read = true;
    for (const std::uint32_t slot : image.slots) is_read &= rings_.read_last(slot, now_ns);
    const bool has_time = !drains_ && now_ns < image.deadline_ns && waiting <= max_waiting_ends;
    if (!is_read && has_time) return false;
    finish(image, now_ns);
    --waiting;
    return true;
  });
}

void RootlessSources::finish(const Ended& image, std::uint64_t now_ns) {
  ProcessInfo& info = stream_.registry.process(image.process);
  info.words = {};
  info.domains = 0;
  for (const std::uint32_t slot : image.slots) {
    rings_.finish(slot, now_ns, info, [] { return std::nullopt; });
    ring_stager_.forget(slot);
  }
  stream_.output.add_ended(
      {.time_ns = std::max(image.time_ns, now_ns), .process = image.process, .slots = image.slots});
  if (!followed_ || !followed_->keeps_rings || image.by_exec) return;
  for (const RingFileId& file : image.files) finder_.remove(info.pid, file);
}

Watermark::Holds RootlessSources::holds(std::uint64_t read_until_ns) {
  return {.unopened_since = finder_.unopened_since(),
          .behind_since = rings_.behind_since_ns(),
          .unattributed_since =
              earliest(processes_.unnamed_since(read_until_ns), stacks_ ? stacks_->waiting_since() : std::nullopt)};
}

RingPoller::Room RootlessSources::room_for(uid_t user) const {
  if (!stream_.timeline.has_room(user)) return RingPoller::no_room;
  return {.words = stream_.output.room(user, drains_ ? max_rootless_drained_ns : max_rootless_staged_ns) * event_words,
          .one_quantum = stream_.output.has_backlog()};
}

void RootlessSources::report(std::uint64_t time_ns, ProcessAction action, const ProcessRecord& record) {
  stream_.push(time_ns, action, record);
}

void RootlessSources::drain(Rest rest) {
  drains_ = true;
  const std::uint64_t last_ns = monotonic_ns() + last_rings_timeout_ns;
  // Twice: what was opened last may be of a process that has ended.
  for (int idle_turns = 0; idle_turns < 2 && monotonic_ns() < last_ns;) {
    collect();
    idle_turns = finder_.found().empty() && !names_.has_unnamed() ? idle_turns + 1 : 0;
    if (idle_turns == 0) await_inspected(1);
  }
  processes_.ask_peak_memory(queries_);
  const std::uint64_t deadline = monotonic_ns() + peak_memory_timeout_ns;
  while (!queries_.is_idle() && monotonic_ns() < deadline) {
    await_inspected(1);
    queries_.process(monotonic_ns());
    poll_rings(monotonic_ns());
  }
  end_stacks();
  const std::uint64_t now = monotonic_ns();
  // Else threads would seem to have done all this time what they did before, and it would look like a stall.
  if (sampler_) sampler_->sample(now);
  rings_.finish_all(now, rest == Rest::is_read ? now + rootless_drain_timeout_ns : now);
  rings_.update(stream_.registry);
}

/// Takes the last stacks, and waits a little for what names them.
void RootlessSources::end_stacks() {
  if (!stacks_) return;
  stacks_->stage(monotonic_ns());
  const std::uint64_t deadline = monotonic_ns() + naming_stacks_timeout_ns;
  while (stacks_->has_waiting() && !(queries_.is_idle() && code_queries_->is_idle()) && monotonic_ns() < deadline) {
    std::array answered{pollfd{.fd = queries_.event_fd(), .events = POLLIN, .revents = 0},
                        pollfd{.fd = code_queries_->event_fd(), .events = POLLIN, .revents = 0}};
    ::poll(answered.data(), answered.size(), 1);
    queries_.process(monotonic_ns());
    code_queries_->process(monotonic_ns());
    poll_rings(monotonic_ns());
  }
  stacks_->give_up();
}

void RootlessSources::add_figures(RunSummary& summary) const {
  if (stacks_) {
    const std::uint64_t on_cpu = stacks_->dropped().at(static_cast<std::size_t>(SampleKind::on_cpu));
    summary.drops.push_back({.kind = std::string(RunSummary::sample), .count = on_cpu});
    summary.drops.push_back({.kind = "tables", .count = stacks_->left_out_tables()});
    summary.drops.push_back({.kind = std::string(RunSummary::unsampled), .count = stacks_->unsampled()});
  }
  std::uint64_t missed = rings_.taken_over();
  for (const auto& [why, kind] : unreadable_kinds) {
    const auto found = unreadable_.find(why);
    const std::uint64_t count = found != unreadable_.end() ? found->second : 0;
    summary.drops.push_back({.kind = std::string(kind), .count = count});
    missed += count;
  }
  summary.rings_missed = missed;
}

bool RootlessSources::is_inspecting() const {
  return !finder_.has_looked_at_all() || !finder_.found().empty() || !names_.inspector().idle() || names_.has_unnamed();
}

std::vector<int> RootlessSources::event_fds() const {
  std::vector<int> fds{queries_.event_fd(), names_.inspector().event_fd(), ends_.get()};
  if (finder_.event_fd() >= 0) fds.push_back(finder_.event_fd());
  if (stacks_) {
    fds.push_back(stack_source_->fd());
    fds.push_back(code_queries_->event_fd());
  }
  return fds;
}

void RootlessSources::await_inspected(int timeout_ms) const {
  std::array<pollfd, 2> wait{{{.fd = names_.inspector().event_fd(), .events = POLLIN, .revents = 0},
                              {.fd = queries_.event_fd(), .events = POLLIN, .revents = 0}}};
  ::poll(wait.data(), wait.size(), timeout_ms);
}

}  // namespace rtev
