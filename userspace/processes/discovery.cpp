// SPDX-License-Identifier: MIT
#include "processes/discovery.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/program_names.hpp"
#include "inspect/tracking.hpp"

namespace rtev {
namespace {

/// A process runs its next program shortly before the record of that exec is written. On a busy host it may lose its
/// cpu in between.
constexpr std::uint64_t max_record_delay_ns = 50'000'000;

/// How often to look whether the records are complete that something waits for.
constexpr std::uint64_t check_interval_ns = 20'000'000;

/// What a record says about its image.
void complete(Image& image, const rtev_lifecycle& record) {
  image.start_ticks = record.start_time / ns_per_tick;
  image.user = record.uid;
  image.start_code = record.start_code;
  image.ns_pid = static_cast<std::int32_t>(record.ns_pid);
  image.comm = comm_of(record);
}

Image image_of(ResolvedRecord& event) {
  Image image = std::move(event.image);
  complete(image, event.record);
  return image;
}

bool is_followed(const rtev_lifecycle& record) {
  return (record.flags & RTEV_FOLLOWED) != 0;
}

}  // namespace

Discovery::Discovery(DiscoveryContext context, DiscoveryOptions options)
    : context_(std::move(context)),
      options_(std::move(options)),
      identifier_(context_.queries, context_.processes, context_.cache, context_.inspector, options_.even_gone,
                  context_.clock),
      rings_(context_, options_),
      scan_(context_, options_,
            {.on_listed = [this](const auto& alive, std::uint64_t asked_ns) { end_gone(alive, asked_ns); },
             .on_silent = [this](std::int32_t pid, std::uint32_t user,
                                 const ProcessStat& stat) { add_silent(pid, user, stat); }}),
      ticking_(context_.tasks) {}

Discovery::~Discovery() = default;

void Discovery::end_gone(const std::unordered_set<std::int32_t>& alive, std::uint64_t listed_ns) {
  for (const TracedProcess& process : context_.processes.processes()) {
    if (process.since_ns < listed_ns && !alive.contains(process.pid))
      exits_.suspect({process.pid, process.start_ticks}, context_.clock());
  }
  exits_.forget_gone(alive);
}

/// It may be an OCaml program, and is shown as such, so that it is known who hangs.
void Discovery::add_silent(std::int32_t pid, std::uint32_t user, const ProcessStat& stat) {
  const std::uint64_t now = context_.clock();
  TracedProcess* process = context_.processes.find(pid);
  if (process == nullptr) {
    Image image;
    image.start_ticks = stat.start_ticks;
    image.user = user;
    image.comm = stat.comm;
    process = &context_.processes.insert(
        new_process(pid, std::move(image), {.action = ProcessAction::found, .time_ns = now}));
    add_to_stream(*process);
    track(*process);
  }
  rings_.mark_unreadable(*process, {}, now, Unreadable::no_answer);
}

/// Adds what was seen so long ago that all records which explain it have been taken.
void Discovery::take_found(std::uint64_t now_ns, std::uint64_t records_complete_until_ns) {
  const std::uint64_t until_ns = records_complete_until_ns - std::min(records_complete_until_ns, max_record_delay_ns);
  // No later than records that are still to come, and no earlier, since the stream may have been delivered until then.
  while (auto found = scan_.take_found(until_ns))
    add_found(std::move(*found), std::min(now_ns, records_complete_until_ns));
  if (!is_scanning()) first_scan_end_ns_ = std::min(first_scan_end_ns_, now_ns);
}

void Discovery::add_found(HostScan::Found found, std::uint64_t time_ns) {
  auto& [pid, asked_ns, answered_ns, image, rings, tries] = found;
  if (exits_.has_exited({pid, image.start_ticks})) return;
  if (const TracedProcess* const known = context_.processes.find(pid)) {
    if (known->since_ns > asked_ns) return;
    if (known->start_ticks == image.start_ticks && known->program.exe && image.file) {
      // The same process with another program: the record of its exec was dropped.
      const auto exe = BinaryCache::identify(image.file.get());
      if (exe && !exe->same_file(*known->program.exe)) end(pid, time_ns, exit_by_exec);
    }
  }
  Image identity;
  identity.start_ticks = image.start_ticks;
  identity.user = image.user;
  identity.comm = image.comm;
  TracedProcess* const process =
      ensure(pid, std::move(image), {.action = ProcessAction::found, .time_ns = time_ns, .has_ring = !rings.empty()});
  if (process == nullptr || !process->rings.slots.empty() || rings.empty()) return;
  if (!rings_.open_found(*process, rings, time_ns, is_new(time_ns))) {
    image = std::move(identity);
    asked_ns = time_ns;  // the process is known since then: an earlier answer would be ignored
    if (rings_.is_not_ready() && scan_.take_again(found)) return;
    if (!rings_.mark_shared(*process, rings)) rings_.mark_unreadable(*process, rings, time_ns);
    scan_.forget_known(pid);
    return;
  }
  add_program_info(*process);
  track(*process);
}

void Discovery::take(ResolvedRecord event) {
  const rtev_lifecycle& record = event.record;
  last_record_ns_ = std::max<std::uint64_t>(last_record_ns_, record.time_ns);
  if (record.type == RTEV_EXEC || record.type == RTEV_EXIT)
    scan_.forget_found(static_cast<std::int32_t>(record.tgid), record.time_ns);
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
    case RTEV_PAUSED:
      return on_paused(record);
    default:
      return;
  }
}

void Discovery::on_exec(ResolvedRecord& event) {
  const rtev_lifecycle& record = event.record;
  const auto pid = static_cast<std::int32_t>(record.tgid);
  std::uint32_t generation = 0;
  if (TracedProcess* const process = context_.processes.find(pid)) {
    if (process->since_ns >= record.time_ns) return;  // of an image before
    generation = context_.processes.info(*process).exec_generation + 1;
    end(pid, record.time_ns, exit_by_exec, record.max_rss_pages);
  }
  scan_.forget_silent(pid);
  const Forgotten forgotten{.origin = {.action = ProcessAction::exec,
                                       .time_ns = record.time_ns,
                                       .generation = generation,
                                       .followed = is_followed(record),
                                       .max_rss_before = record.max_rss_pages},
                            .start_ticks = record.start_time / ns_per_tick,
                            .time_ns = context_.clock()};
  const auto add = [this, record, forgotten](Image image) {
    complete(image, record);
    const auto exec_pid = static_cast<std::int32_t>(record.tgid);
    if (ensure(exec_pid, std::move(image), forgotten.origin) == nullptr) forgotten_[exec_pid] = forgotten;
  };
  if (event.answered) return add(std::move(event.image));
  if (!options_.filter.wants_pid(pid)) return;
  forgotten_[pid] = forgotten;
  context_.queries.ask({.pid = pid, .image = true}, record.uid, [this, pid, record, add](ProcessView view) {
    // By now it may have ended, or be known by its ring, or run another program.
    const bool is_current = view.stat && std::string_view(view.stat->comm) == comm_of(record) &&
                            view.stat->start_ticks == record.start_time / ns_per_tick;
    if (is_current && context_.processes.find(pid) == nullptr) add(std::move(view.image));
  });
}

/// The child of an OCaml process is one, too, with its parent's image. Not looked up in /proc, where it may be running
/// another program already; the record of that exec is on its way.
void Discovery::on_fork(const rtev_lifecycle& record) {
  const auto pid = static_cast<std::int32_t>(record.peer);
  const TracedProcess* const parent = context_.processes.find(static_cast<std::int32_t>(record.tgid));
  if (parent == nullptr) return;
  const bool is_ocaml = parent->index.has_value();
  const ProcessInfo& image = context_.processes.info(*parent);
  if (!options_.filter.wants(pid, image.names(), is_followed(record))) return context_.kernel.untrack(pid);

  TracedProcess child{.pid = pid,
                      .start_ticks = record.start_time / ns_per_tick,
                      .user = record.uid,
                      .origin = ProcessAction::fork,
                      .peer = parent->pid,
                      .since_ns = record.time_ns,
                      .learnt_ns = context_.clock(),
                      .max_rss_before = 0,
                      .info = image,
                      .program = parent->program};
  child.program.library_tried = false;
  child.info.pid = pid;
  child.info.ns_pid = record.ns_pid != 0 ? static_cast<std::int32_t>(record.ns_pid) : pid;
  child.info.start_ticks = child.start_ticks;
  child.info.exec_generation = 0;
  child.info.ring = RingState::none;
  child.info.ring_path.clear();
  child.info.words = {};
  child.info.domains = 0;
  child.info.missed = {};
  child.info.left_alone = {};
  if (const TracedProcess* const known = context_.processes.find(pid)) {
    if (known->start_ticks == child.start_ticks) return;
    end(pid, record.time_ns, exit_unseen);
  }
  TracedProcess& process = context_.processes.insert(std::move(child));
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
  if (context_.processes.find(pid, start_ticks) != nullptr)
    end(pid, record.time_ns, static_cast<std::int64_t>(record.detail), record.max_rss_pages);
}

void Discovery::on_ring(ResolvedRecord& event) {
  const rtev_lifecycle& record = event.record;
  const auto pid = static_cast<std::int32_t>(record.tgid);
  Origin origin{
      .action = ProcessAction::found, .time_ns = record.time_ns, .has_ring = true, .followed = is_followed(record)};
  Image image = image_of(event);
  if (const auto forgotten = forgotten_.find(pid);
      forgotten != forgotten_.end() && forgotten->second.start_ticks == image.start_ticks) {
    origin = forgotten->second.origin;
    origin.has_ring = true;
  }
  TracedProcess* const process = ensure(pid, std::move(image), origin);
  if (process == nullptr) return context_.kernel.untrack(pid);
  PendingRing ring{.announced_ns = record.time_ns,
                   .opened = std::move(event.rings),
                   .announced = announced_ring(record, event.files),
                   .placed = std::move(event.placed_ring),
                   .path = std::move(event.ring_path),
                   .image_ended = event.image_ended};
  if (rings_.announce(*process, std::move(ring))) track(*process);
}

/// The runtime's own flag: it may have been set before its functions were probed.
void Discovery::on_paused(const rtev_lifecycle& record) {
  TracedProcess* const process = context_.processes.find(static_cast<std::int32_t>(record.tgid));
  if (process == nullptr || !process->index) return;
  process->rings.state_known = true;
  RingState& state = context_.registry.process(*process->index).ring;
  if (state == RingState::active) state = RingState::paused;
}

/// Uprobes report what the ring does not: a pause is never written to it, and neither is a stop if the process goes on.
void Discovery::on_probe(const rtev_lifecycle& record) {
  TracedProcess* const process = context_.processes.find(static_cast<std::int32_t>(record.tgid));
  if (process == nullptr || !process->index) return;
  // Whatever the runtime does to its ring now, the ring is ready: it must be open before its pause is reported.
  if (rings_.open_pending(*process)) track(*process);
  RingState& state = context_.registry.process(*process->index).ring;
  const auto change = [&](RingState to, ProcessAction action) {
    // A program that was found asleep may have been paused, which BPF sees when it runs again.
    const bool was_known = std::exchange(process->rings.state_known, true) || process->origin != ProcessAction::found ||
                           state == RingState::stopped;
    if (state == RingState::none || state == RingState::shared || state == RingState::probed ||
        state == RingState::unreadable || (state == to && was_known))
      return;
    // What the ring says of its end may be read before older records of BPF.
    if (state != RingState::stopped) state = to;
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

void Discovery::tick(std::uint64_t now_ns, std::uint64_t records_complete_until_ns,
                     std::optional<std::uint64_t> records_wait_since_ns) {
  take_inspected();
  const std::uint64_t last_ns = std::min(last_record_ns_, records_wait_since_ns.value_or(last_record_ns_));
  const std::uint64_t late = std::min(last_ns, max_record_delay_ns);
  const std::uint64_t complete_until_ns = std::max(records_complete_until_ns, last_ns - late);
  take_found(now_ns, complete_until_ns);
  identifier_.retry(now_ns);
  std::erase_if(forgotten_, [&](const auto& entry) { return entry.second.time_ns < complete_until_ns; });
  for (auto& [pid, since_ns, runtime] : identifier_.take_looked()) {
    if (TracedProcess* const process = find(pid, since_ns))
      settle(*process, identifier_.found_runtime(*process, std::move(runtime)));
  }
  const auto is_current = [&](const ExitTracker::ProcessId& process) {
    return context_.processes.find(process.pid, process.start_ticks) != nullptr;
  };
  for (const auto& [pid, start_ticks] : exits_.confirm(complete_until_ns, is_current)) end(pid, now_ns, exit_unseen);
  exits_.expire_unresolved(now_ns);
  rings_.retry(now_ns, [this](const TracedProcess& process) { track(process); });
  ticking_.at(next_tick_ns(now_ns));
}

/// When tick() has something to do again, as far as only time decides.
std::optional<std::uint64_t> Discovery::next_tick_ns(std::uint64_t now_ns) const {
  const bool waits = scan_.has_found() || exits_.has_suspects();
  return earliest(waits ? std::optional(now_ns + check_interval_ns) : std::nullopt,
                  earliest(rings_.next_try_ns(), identifier_.next_retry_ns()));
}

std::optional<std::uint64_t> Discovery::unnamed_since(std::uint64_t now_ns) const {
  return earliest(context_.processes.unnamed_since(now_ns), exits_.unnamed_since(now_ns));
}

void Discovery::take_inspected() {
  for (const FileIdentity& file : context_.inspector.take_inspected()) {
    const auto binary = context_.cache.find(file).value_or(nullptr);
    for (const std::int32_t pid : context_.processes.waiting_for(file)) {
      TracedProcess& process = *context_.processes.find(pid);
      settle(process, identifier_.resume(process, binary));
    }
    for (TracedProcess& process : exits_.take_resolved(file, binary)) add_program_info(process);
  }
}

/// The process, if it is to be traced; begins to identify its program if it is new. All ways but fork lead here.
TracedProcess* Discovery::ensure(std::int32_t pid, Image image, const Origin& origin) {
  if (TracedProcess* const known = context_.processes.find(pid)) {
    if (image.start_ticks == known->start_ticks) {
      known->user = image.user;  // it may have changed it since
      known->has_ring |= origin.has_ring;
      if (known->has_ring && !known->index) add_to_stream(*known);
      if (known->has_ring) identifier_.note_ring(*known);
      return known;
    }
    end(pid, origin.time_ns, exit_unseen);  // the pid has a new owner
  }
  if (!options_.filter.wants(pid, image.names(), origin.followed)) return nullptr;

  UniqueFd file = std::move(image.file);
  TracedProcess& process = context_.processes.insert(new_process(pid, std::move(image), origin));
  if (process.has_ring) add_to_stream(process);
  return settle(process, identifier_.identify(process, std::move(file))) ? &process : nullptr;
}

TracedProcess Discovery::new_process(std::int32_t pid, Image image, const Origin& origin) const {
  TracedProcess process{.pid = pid,
                        .start_ticks = image.start_ticks,
                        .user = image.user,
                        .origin = origin.action,
                        .since_ns = origin.time_ns,
                        .learnt_ns = context_.clock(),
                        .max_rss_before = origin.max_rss_before,
                        .has_ring = origin.has_ring,
                        .program = {.by_loader = is_loader_path(image.exe), .start_code = image.start_code}};
  process.info.pid = pid;
  process.info.ns_pid = image.ns_pid != 0 ? image.ns_pid : pid;
  process.info.start_ticks = image.start_ticks;
  process.info.exec_generation = origin.generation;
  process.info.comm = std::move(image.comm);
  process.info.exe = std::move(image.exe);
  process.info.script = std::move(image.script);
  force_version(process.info);
  return process;
}

/// Acts on what was found out about the program of a process. False if the process is not traced and forgotten.
bool Discovery::settle(TracedProcess& process, ProgramIdentifier::Outcome outcome) {
  switch (outcome) {
    case ProgramIdentifier::Outcome::waiting:
      return true;
    case ProgramIdentifier::Outcome::not_ocaml:
      context_.processes.erase(process.pid);
      return false;
    case ProgramIdentifier::Outcome::found:
      if (!process.index) add_to_stream(process);
      // The ring may have been renamed. Only an OCaml program is searched for it, and not one that announced its ring:
      // what is mapped by now may be the ring of the next program.
      if (process.rings.slots.empty() && !process.has_ring && process.origin == ProcessAction::found)
        look_for_renamed_ring(process);
      add_program_info(process);
      track(process);
      return true;
    case ProgramIdentifier::Outcome::unknown:
      track(process);
      return true;
  }
  return true;
}

void Discovery::look_for_renamed_ring(const TracedProcess& process) {
  context_.queries.ask({.pid = process.pid, .shared_files = true}, process.user,
                       [this, pid = process.pid, since_ns = process.since_ns](const ProcessView& view) {
                         TracedProcess* const found = find(pid, since_ns);
                         if (found == nullptr || !found->index || !found->rings.slots.empty()) return;
                         if (rings_.open_found(*found, view.rings, since_ns, is_new(since_ns))) track(*found);
                       });
}

/// The image that came into view then, if it still runs.
TracedProcess* Discovery::find(std::int32_t pid, std::uint64_t since_ns) {
  TracedProcess* const process = context_.processes.find(pid);
  return process != nullptr && process->since_ns == since_ns ? process : nullptr;
}

void Discovery::force_version(ProcessInfo& info) const {
  const auto family = family_of_version(options_.forced_version);
  if (!family) return;
  info.version = options_.forced_version;
  info.family = *family;
  info.family_source = FamilySource::forced;
}

void Discovery::add_to_stream(TracedProcess& process) {
  process.info.user = process.user;
  process.index = context_.registry.add_process(std::move(process.info));
  // A forked process has what its parent has.
  const bool is_known = !context_.registry.process(*process.index).service.is_empty();
  if (options_.services && !is_known) context_.processes.ask_service(context_.queries, process);
  report(process, process.since_ns, process.origin, process.peer);
}

/// Adds what the binary says to the info of a process of the stream.
void Discovery::add_program_info(TracedProcess& process) {
  if (!process.program.binary) return;
  const RuntimeBinary& runtime = process.program.binary->runtime;
  ProcessInfo& info = context_.registry.process(*process.index);
  if (!runtime.family || info.family_source == FamilySource::forced) return;
  info.version = runtime.version;
  info.family = *runtime.family;
  info.family_source = FamilySource::symbols;
}

void Discovery::track(const TracedProcess& process) {
  const auto& binary = process.program.binary;
  rtev_tracked tracked{};
  if (binary) tracked = tracking_of(*binary, bias_of(process.program));
  if (!process.rings.slots.empty()) {
    tracked.slot = process.rings.slots.back();
    tracked.ring_indices = process.rings.indices.address;
    tracked.ring_stride = process.rings.indices.stride;
    tracked.ring_part_shift = process.rings.indices.part_shift;
  }
  context_.kernel.track(process.pid, tracked);
  if (context_.processes.is_alive(process)) return;
  // BPF reports the exits of tracked processes and then forgets them, but this one ended before it was tracked.
  context_.kernel.untrack(process.pid);
  exits_.suspect({process.pid, process.start_ticks}, context_.clock());
}

/// The image is gone, by exit or exec; its rings are read to their end. `max_rss_pages`: the peak memory of the
/// process, this image and those before it taken together; 0: unknown.
void Discovery::end(std::int32_t pid, std::uint64_t time_ns, std::int64_t status, std::uint32_t max_rss_pages) {
  TracedProcess* const process = context_.processes.find(pid);
  if (process == nullptr) return;
  // Where an earlier image had more, the peak of this one is unknown.
  if (process->index && process->max_rss_before && max_rss_pages > *process->max_rss_before)
    context_.registry.process(*process->index).max_rss_bytes =
        max_rss_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (process->index) report(*process, std::max(time_ns, process->since_ns), ProcessAction::exit, 0, status);
  exits_.note_end(*process, status);
  const bool by_exec = status == exit_by_exec;
  rings_.end_image(*process, time_ns, by_exec);
  if (process->index) {
    // What is left of it is in its rings.
    rings_.forget(*process);
    ProcessInfo& info = context_.registry.process(*process->index);
    info.ended = true;
    context_.events.on_image_end({.process = *process->index,
                                  .slots = process->rings.slots,
                                  .announced_ns = process->rings.announced_ns,
                                  .time_ns = time_ns,
                                  .by_exec = by_exec});
    info.ring = after_end(info.ring);
    if (process->program.inspecting) exits_.keep_unresolved(std::move(*process));
  }
  context_.processes.erase(pid);
}

void Discovery::report(const TracedProcess& process, std::uint64_t time_ns, ProcessAction action, std::int32_t peer,
                       std::int64_t detail) {
  context_.events.on_process(time_ns, action, {.process = *process.index, .peer = peer, .detail = detail});
}

}  // namespace rtev
