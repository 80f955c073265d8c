// SPDX-License-Identifier: MIT
#include "processes/discovery.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "inspect/loader.hpp"
#include "processes/rings/ring_file_lookup.hpp"
#include "processes/tracking.hpp"

namespace rtev {
namespace {

/// /proc counts start times in ticks of 1/100 s, whatever the kernel's own tick is.
constexpr std::uint64_t ns_per_tick = 10'000'000;

/// The image of an event, completed by what its record says.
Image image_of(LifecycleEvent& event) {
  Image image = std::move(event.image);
  image.start_ticks = event.record.start_time / ns_per_tick;
  image.comm = comm_of(event.record);
  return image;
}

bool is_followed(const rtev_lifecycle& record) {
  return (record.flags & RTEV_FOLLOWED) != 0;
}

}  // namespace

Discovery::Discovery(DiscoveryContext context, DiscoveryOptions options)
    : procfs_(std::move(context.procfs)),
      registry_(context.registry),
      processes_(context.processes),
      cache_(context.cache),
      inspector_(context.inspector),
      events_(context.events),
      kernel_(context.kernel),
      clock_(std::move(context.clock)),
      options_(std::move(options)),
      identifier_(procfs_, processes_, cache_, inspector_, options_.even_gone, clock_),
      rings_({.procfs = procfs_,
              .registry = registry_,
              .processes = processes_,
              .events = events_,
              .kernel = kernel_,
              .clock = clock_},
             {.history = options_.history, .since_ns = options_.since_ns}) {}

void Discovery::begin_scan(std::uint64_t now_ns) {
  to_scan_ = procfs_.pids();
  const std::unordered_set<std::int32_t> alive(to_scan_.begin(), to_scan_.end());
  for (const TracedProcess& process : processes_.processes()) {
    if (!alive.contains(process.pid)) exits_.suspect({process.pid, process.start_ticks}, now_ns);
  }
  exits_.forget_gone(alive);
  if (options_.filter.only_followed) to_scan_.clear();
}

bool Discovery::scan_some(std::uint64_t now_ns, std::size_t max_processes) {
  for (; max_processes > 0 && !to_scan_.empty(); --max_processes) {
    look_at(to_scan_.back(), now_ns);
    to_scan_.pop_back();
  }
  scanned_ |= to_scan_.empty();
  return !to_scan_.empty();
}

void Discovery::look_at(std::int32_t pid, std::uint64_t now_ns) {
  const auto stat = procfs_.stat(pid);
  if (!stat || !options_.filter.wants(pid, stat->comm, false)) return;
  if (exits_.has_exited({pid, stat->start_ticks})) return;
  const TracedProcess* known = processes_.find(pid);
  if (known == nullptr && stat->kernel_thread) return;
  Image image = open_image(procfs_, pid);
  image.start_ticks = stat->start_ticks;
  image.comm = stat->comm;
  if (known != nullptr && known->start_ticks == stat->start_ticks && known->program.exe && image.file) {
    // The same process with another program: the record of its exec was dropped.
    const auto exe = BinaryCache::identify(image.file.get());
    if (exe && !exe->same_file(*known->program.exe)) end(pid, now_ns, exit_by_exec);
  }
  const std::vector<OpenedRing> rings = open_mapped_rings(procfs_, pid);
  TracedProcess* const process =
      ensure(pid, std::move(image), {.action = ProcessAction::found, .time_ns = now_ns, .has_ring = !rings.empty()});
  if (process == nullptr || !process->rings.slots.empty() || rings.empty()) return;
  if (!rings_.open_found(*process, rings, now_ns, scanned_)) {
    rings_.mark_shared(*process, rings);
    return;
  }
  add_program_info(*process);
  track(*process);
}

void Discovery::take(LifecycleEvent event) {
  const rtev_lifecycle& record = event.record;
  switch (record.type) {
    case RTEV_EXEC:
      return on_exec(event);
    case RTEV_FORK:
      return on_fork(record);
    case RTEV_EXIT:
      return on_exit(record);
    case RTEV_RING:
      return on_ring(event);
    case RTEV_PROBE:
      return on_probe(record);
    default:
      return;
  }
}

void Discovery::on_exec(LifecycleEvent& event) {
  const rtev_lifecycle& record = event.record;
  const auto pid = static_cast<std::int32_t>(record.tgid);
  std::uint32_t generation = 0;
  if (TracedProcess* const process = processes_.find(pid)) {
    // The scan was faster and has seen the new program already.
    if (process->since_ns >= record.time_ns) {
      if (process->start_ticks != record.start_time / ns_per_tick) return;
      process->max_rss_before = record.max_rss_pages;
      process->exec_ns = record.time_ns;
      if (auto ring = rings_.take_before(pid, record.time_ns))
        add_replaced_image(*process, std::move(*ring), record.time_ns);
      return;
    }
    generation = processes_.info(*process).exec_generation + 1;
    end(pid, record.time_ns, exit_by_exec, record.max_rss_pages);
  }
  TracedProcess* const process = ensure(pid, image_of(event),
                                        {.action = ProcessAction::exec,
                                         .time_ns = record.time_ns,
                                         .generation = generation,
                                         .followed = is_followed(record)});
  if (process != nullptr) process->max_rss_before = record.max_rss_pages;
}

/// The child of an OCaml process is one, too, with its parent's image. Not looked up in /proc, where it may be running
/// another program already; the record of that exec is on its way.
void Discovery::on_fork(const rtev_lifecycle& record) {
  const auto pid = static_cast<std::int32_t>(record.peer);
  const TracedProcess* const parent = processes_.find(static_cast<std::int32_t>(record.tgid));
  if (parent == nullptr) return;
  const bool is_ocaml = parent->index.has_value();
  const ProcessInfo& image = processes_.info(*parent);
  if (!options_.filter.wants(pid, image.comm, is_followed(record))) return kernel_.untrack(pid);

  TracedProcess child{.pid = pid,
                      .start_ticks = record.start_time / ns_per_tick,
                      .origin = ProcessAction::fork,
                      .peer = parent->pid,
                      .since_ns = record.time_ns,
                      .max_rss_before = 0,
                      .info = image,
                      .program = parent->program};
  child.program.library_tried = false;
  child.info.pid = pid;
  child.info.ns_pid = procfs_.ns_pid(pid);
  child.info.start_ticks = child.start_ticks;
  child.info.exec_generation = 0;
  child.info.ring = RingState::none;
  child.info.ring_path.clear();
  child.info.words = {};
  child.info.domains = 0;
  if (const TracedProcess* const known = processes_.find(pid)) {
    if (known->start_ticks == child.start_ticks) return;
    end(pid, record.time_ns, exit_unseen);
  }
  TracedProcess& process = processes_.insert(std::move(child));
  identifier_.await_library(process);
  if (!is_ocaml) return;
  add_to_stream(process);
  track(process);
}

void Discovery::on_exit(const rtev_lifecycle& record) {
  const auto pid = static_cast<std::int32_t>(record.tgid);
  const std::uint64_t start_ticks = record.start_time / ns_per_tick;
  exits_.note_exit({pid, start_ticks});
  // A process with another start time is the next owner of the pid, which the scan found before this record was read.
  if (processes_.find(pid, start_ticks) != nullptr)
    end(pid, record.time_ns, static_cast<std::int64_t>(record.detail), record.max_rss_pages);
}

void Discovery::on_ring(LifecycleEvent& event) {
  const rtev_lifecycle& record = event.record;
  const auto pid = static_cast<std::int32_t>(record.tgid);
  if (!event.image.file && event.files.program && processes_.find(pid) == nullptr) {
    // The process is gone, but its program is still on disk in most cases.
    if (auto program = open_by_place(procfs_, *event.files.program)) {
      event.image.file = std::move(program->fd);
      event.image.exe = std::move(program->path);
    }
  }
  TracedProcess* const process = ensure(
      pid, image_of(event),
      {.action = ProcessAction::found, .time_ns = record.time_ns, .has_ring = true, .followed = is_followed(record)});
  if (process == nullptr) return kernel_.untrack(pid);
  PendingRing ring{.announced_ns = record.time_ns,
                   .comm = std::string(comm_of(record)),
                   .opened = std::move(event.rings),
                   .place = std::move(event.files.ring),
                   .program = std::move(event.files.program),
                   .clock_offset_ns = event.files.clock_offset_ns,
                   .image_ended = event.image_ended,
                   .found_ns = process->since_ns > record.time_ns ? process->since_ns : 0};
  if (rings_.announce(*process, std::move(ring))) track(*process);
}

/// Uprobes report what the ring does not: a pause is never written to it, and neither is a stop if the process goes on.
void Discovery::on_probe(const rtev_lifecycle& record) {
  TracedProcess* const process = processes_.find(static_cast<std::int32_t>(record.tgid));
  if (process == nullptr || !process->index) return;
  // Whatever the runtime does to its ring now, the ring is ready: it must be open before its pause is reported.
  if (rings_.open_pending(*process)) track(*process);
  RingState& state = registry_.process(*process->index).ring;
  const auto change = [&](RingState to, ProcessAction action) {
    if (state == RingState::none || state == RingState::shared || state == RingState::probed || state == to) return;
    state = to;
    report(*process, record.time_ns, action);
  };
  switch (record.peer) {
    case RTEV_PROBE_PAUSE:
      return change(RingState::paused, ProcessAction::pause);
    case RTEV_PROBE_RESUME:
      return change(RingState::active, ProcessAction::resume);
    case RTEV_PROBE_STW_TEARDOWN:
    case RTEV_PROBE_DESTROY:
      return change(RingState::stopped, ProcessAction::stop);
    default:
      return;
  }
}

void Discovery::tick(std::uint64_t now_ns, std::uint64_t records_complete_until_ns) {
  take_inspected();
  for (const std::int32_t pid : identifier_.due(now_ns)) {
    TracedProcess* const process = processes_.find(pid);
    if (process != nullptr && process->program.loading) settle(*process, identifier_.retry(*process));
  }
  const auto is_current = [&](const ExitTracker::ProcessId& process) {
    return processes_.find(process.pid, process.start_ticks) != nullptr;
  };
  for (const auto& [pid, start_ticks] : exits_.confirm(now_ns, records_complete_until_ns, is_current))
    end(pid, now_ns, exit_unseen);
  exits_.expire_unresolved(now_ns);
  rings_.retry(now_ns, records_complete_until_ns, [this](const TracedProcess& process) { track(process); });
}

std::optional<std::uint64_t> Discovery::next_tick_ns() const {
  std::optional<std::uint64_t> next;
  for (const auto time : {rings_.next_try_ns(), exits_.next_check_ns(), identifier_.next_retry_ns()}) {
    if (time) next = std::min(next.value_or(*time), *time);
  }
  return next;
}

std::optional<std::uint64_t> Discovery::unnamed_since(std::uint64_t now_ns) const {
  const auto living = processes_.unnamed_since(now_ns), ended = exits_.unnamed_since(now_ns);
  return living && ended ? std::min(living, ended) : (living ? living : ended);
}

void Discovery::take_inspected() {
  for (const FileIdentity& file : inspector_.take_inspected()) {
    const auto binary = cache_.find(file).value_or(nullptr);
    std::vector<std::int32_t> waiting;
    for (const TracedProcess& process : processes_.processes()) {
      if (process.program.inspecting == file) waiting.push_back(process.pid);
    }
    for (const std::int32_t pid : waiting) {
      TracedProcess& process = *processes_.find(pid);
      settle(process, identifier_.resume(process, binary));
    }
    for (TracedProcess& process : exits_.take_resolved(file, binary)) add_program_info(process);
  }
}

/// The process, if it is to be traced; begins to identify its program if it is new. All ways but fork lead here.
TracedProcess* Discovery::ensure(std::int32_t pid, Image image, const Origin& origin) {
  if (TracedProcess* const known = processes_.find(pid)) {
    if (image.start_ticks == known->start_ticks) {
      known->has_ring |= origin.has_ring;
      if (known->has_ring && !known->index) add_to_stream(*known);
      return known;
    }
    end(pid, origin.time_ns, exit_unseen);  // the pid has a new owner
  }
  if (!options_.filter.wants(pid, image.comm, origin.followed)) return nullptr;

  TracedProcess& process = processes_.insert({.pid = pid,
                                              .start_ticks = image.start_ticks,
                                              .origin = origin.action,
                                              .since_ns = origin.time_ns,
                                              .has_ring = origin.has_ring,
                                              .program = {.by_loader = is_loader_path(image.exe)}});
  process.info.pid = pid;
  process.info.ns_pid = image.ns_pid;
  process.info.start_ticks = image.start_ticks;
  process.info.exec_generation = origin.generation;
  process.info.comm = std::move(image.comm);
  process.info.exe = std::move(image.exe);
  force_version(process.info);
  if (process.has_ring) add_to_stream(process);
  return settle(process, identifier_.identify(process, std::move(image.file))) ? &process : nullptr;
}

/// Acts on what was found out about the program of a process. False if the process is not traced and forgotten.
bool Discovery::settle(TracedProcess& process, ProgramIdentifier::Outcome outcome) {
  switch (outcome) {
    case ProgramIdentifier::Outcome::waiting:
      return true;
    case ProgramIdentifier::Outcome::not_ocaml:
      processes_.erase(process.pid);
      return false;
    case ProgramIdentifier::Outcome::found:
      if (!process.index) add_to_stream(process);
      // The ring may have been renamed. Only an OCaml program is searched for it, and not one that announced its ring:
      // what is mapped by now may be the ring of the next program.
      if (process.rings.slots.empty() && !process.has_ring && process.origin == ProcessAction::found)
        rings_.open_found(process, open_shared_files(procfs_, process.pid), process.since_ns, scanned_);
      add_program_info(process);
      track(process);
      return true;
    case ProgramIdentifier::Outcome::unknown:
      track(process);
      return true;
  }
  return true;
}

void Discovery::force_version(ProcessInfo& info) const {
  const auto family = family_of_version(options_.forced_version);
  if (!family) return;
  info.version = options_.forced_version;
  info.family = *family;
  info.family_source = FamilySource::forced;
}

void Discovery::add_to_stream(TracedProcess& process) {
  process.index = registry_.add_process(std::move(process.info));
  report(process, process.since_ns, process.origin, process.peer);
}

/// Adds what the binary says to the info of a process of the stream.
void Discovery::add_program_info(TracedProcess& process) {
  if (!process.program.binary) return;
  const RuntimeBinary& runtime = process.program.binary->runtime;
  ProcessInfo& info = registry_.process(*process.index);
  if (info.ring == RingState::active && has_paused_events(process.pid, procfs_, runtime)) info.ring = RingState::paused;
  if (!runtime.family || info.family_source == FamilySource::forced) return;
  info.version = runtime.version;
  info.family = *runtime.family;
  info.family_source = FamilySource::symbols;
}

void Discovery::track(const TracedProcess& process) {
  const auto& binary = process.program.binary;
  rtev_tracked tracked = binary ? tracking_of(process.pid, procfs_, *binary) : rtev_tracked{};
  if (!process.rings.slots.empty()) tracked.slot = process.rings.slots.back();
  kernel_.track(process.pid, tracked);
  if (processes_.is_alive(process)) return;
  // BPF reports the exits of tracked processes and then forgets them, but this one ended before it was tracked.
  kernel_.untrack(process.pid);
  exits_.suspect({process.pid, process.start_ticks}, clock_());
}

/// The scan found a process when it ran its next program already, and only now the record of that exec is read. The
/// ring that was announced before belongs to the image that the exec ended. That image was never seen, but its ring may
/// have been opened in time, or saved.
void Discovery::add_replaced_image(const TracedProcess& later, PendingRing ring, std::uint64_t ended_ns) {
  TracedProcess before{
      .pid = later.pid, .start_ticks = later.start_ticks, .since_ns = ring.announced_ns, .has_ring = true};
  before.info.pid = later.pid;
  before.info.ns_pid = processes_.info(later).ns_pid;
  before.info.start_ticks = later.start_ticks;
  before.info.comm = std::move(ring.comm);
  force_version(before.info);
  if (ring.program) {
    if (auto program = open_by_place(procfs_, *ring.program)) {
      before.info.exe = std::move(program->path);
      identifier_.identify_gone(before, std::move(program->fd));
    }
  }
  add_to_stream(before);
  add_program_info(before);
  rings_.open_replaced(before, later, std::move(ring), ended_ns);
  report(before, ended_ns, ProcessAction::exit, 0, exit_by_exec);
  conclude(before, ended_ns, true);
}

/// The image is gone, by exit or exec; its rings are read to their end. `max_rss_pages`: the peak memory of the
/// process, this image and those before it taken together; 0: unknown.
void Discovery::end(std::int32_t pid, std::uint64_t time_ns, std::int64_t status, std::uint32_t max_rss_pages) {
  TracedProcess* const process = processes_.find(pid);
  if (process == nullptr) return;
  // Where an earlier image had more, the peak of this one is unknown.
  if (process->index && process->max_rss_before && max_rss_pages > *process->max_rss_before)
    registry_.process(*process->index).max_rss_bytes =
        max_rss_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  // A scan may have found the process between its exit record and the reading of that.
  if (process->index) report(*process, std::max(time_ns, process->since_ns), ProcessAction::exit, 0, status);
  exits_.note_end(*process, status);
  const bool by_exec = status == exit_by_exec;
  rings_.end_image(*process, time_ns, by_exec);
  if (process->index) conclude(*process, time_ns, by_exec);
  processes_.erase(pid);
}

/// An image of the stream ended. What is left of it is in its rings.
void Discovery::conclude(TracedProcess& process, std::uint64_t time_ns, bool by_exec) {
  rings_.release(process);
  ProcessInfo& info = registry_.process(*process.index);
  info.ended = true;
  events_.on_image_end({.process = *process.index,
                        .slots = process.rings.slots,
                        .announced_ns = process.rings.announced_ns,
                        .time_ns = time_ns,
                        .by_exec = by_exec});
  info.ring = after_end(info.ring);
  if (process.program.inspecting) exits_.keep_unresolved(std::move(process));
}

void Discovery::report(const TracedProcess& process, std::uint64_t time_ns, ProcessAction action, std::int32_t peer,
                       std::int64_t detail) {
  events_.on_process(time_ns, action, {.process = *process.index, .peer = peer, .detail = detail});
}

}  // namespace rtev
