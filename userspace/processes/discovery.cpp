// SPDX-License-Identifier: MIT
#include "processes/discovery.hpp"

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>

#include "processes/ring_file_lookup.hpp"

namespace rtev {
namespace {

/// How long names may be waited for; after that events go out with the table that most programs have.
constexpr std::uint64_t naming_patience_ns = 500'000'000;

/// A process that seems to be gone is ended without a record of its exit when all records of that time are known, or
/// after so long on a host where there are always more. Looked at again at this interval.
constexpr std::uint64_t exit_patience_ns = 2'000'000'000, exit_look_interval_ns = 20'000'000;

/// /proc counts start times in ticks of 1/100 s, whatever the kernel's own tick is.
constexpr std::uint64_t ns_per_tick = 10'000'000;

constexpr auto forever = std::numeric_limits<std::uint64_t>::max();

/// The image of a sighting, completed by what the record says.
Image image_of(Sighting& sighting) {
  Image image = std::move(sighting.image);
  image.start_ticks = sighting.record.start_time / ns_per_tick;
  image.comm = comm_of(sighting.record);
  return image;
}

bool is_followed(const rtev_lifecycle& record) {
  return (record.flags & RTEV_FOLLOWED) != 0;
}

}  // namespace

Discovery::Discovery(Procfs procfs, Registry& registry, BinaryCache& cache, Inspector& inspector,
                     DiscoveryListener& listener, DiscoveryOptions options)
    : procfs_(std::move(procfs)),
      registry_(registry),
      cache_(cache),
      inspector_(inspector),
      listener_(listener),
      options_(std::move(options)),
      opener_(registry, options_.history, options_.since_ns,
              [this](std::int32_t pid, std::uint64_t birth_ns) { return listener_.is_latest_ring(pid, birth_ns); }) {}

void Discovery::begin_scan(std::uint64_t now_ns) {
  to_scan_ = procfs_.pids();
  const std::unordered_set<std::int32_t> alive(to_scan_.begin(), to_scan_.end());
  for (const auto& [pid, process] : processes_) {
    if (!alive.contains(pid)) vanished_.push_back({pid, process.start_ticks, now_ns});
  }
  std::erase_if(ended_, [&](const auto& entry) { return !alive.contains(entry.first); });
  if (options_.only_followed) to_scan_.clear();
}

bool Discovery::scan_some(std::uint64_t now_ns, std::size_t most) {
  for (; most > 0 && !to_scan_.empty(); --most) {
    look_at(to_scan_.back(), now_ns);
    to_scan_.pop_back();
  }
  scanned_ |= to_scan_.empty();
  return !to_scan_.empty();
}

void Discovery::look_at(std::int32_t pid, std::uint64_t now_ns) {
  const auto stat = procfs_.stat(pid);
  if (!stat || !wanted(pid, stat->comm, false)) return;
  if (const auto ended = ended_.find(pid); ended != ended_.end() && ended->second == stat->start_ticks) return;
  const Process* known = find(pid);
  if (known == nullptr && stat->kernel_thread) return;
  Image image = pin_image(procfs_, pid);
  image.start_ticks = stat->start_ticks;
  image.comm = stat->comm;
  if (known != nullptr && known->start_ticks == stat->start_ticks && known->exe && image.file) {
    // The same process with another program: the record of its exec was dropped.
    const auto exe = BinaryCache::identify(image.file.get());
    if (exe && !exe->same_file(*known->exe)) end(pid, now_ns, exit_by_exec);
  }
  const std::vector<PinnedRing> rings = pin_rings(procfs_, pid);
  Process* process =
      ensure(pid, std::move(image), {.action = ProcessAction::found, .time_ns = now_ns, .has_ring = !rings.empty()});
  if (process == nullptr || !process->slots.empty() || rings.empty()) return;
  if (!open_rings(*process, rings, now_ns, {.newborn = scanned_})) {
    note_shared(*process, rings);
    return;
  }
  describe(*process);
  track(*process);
}

void Discovery::take(Sighting sighting) {
  const rtev_lifecycle& record = sighting.record;
  switch (record.type) {
    case RTEV_EXEC:
      return on_exec(sighting);
    case RTEV_FORK:
      return on_fork(record);
    case RTEV_EXIT:
      return on_exit(record);
    case RTEV_RING:
      return on_ring(sighting);
    case RTEV_PROBE:
      return on_probe(record);
    default:
      return;
  }
}

void Discovery::on_exec(Sighting& sighting) {
  const rtev_lifecycle& record = sighting.record;
  const auto pid = static_cast<std::int32_t>(record.tgid);
  std::uint32_t generation = 0;
  if (Process* process = find(pid)) {
    // The scan was faster and has seen the new program already.
    if (process->since_ns >= record.time_ns) {
      if (process->start_ticks != record.start_time / ns_per_tick) return;
      process->max_rss_before = record.max_rss_pages;
      process->exec_ns = record.time_ns;
      if (auto birth = births_.take_before(pid, record.time_ns)) add_image_before(*process, *birth, record.time_ns);
      return;
    }
    generation = (process->index ? registry_.process(*process->index) : process->facts).exec_generation + 1;
    end(pid, record.time_ns, exit_by_exec, record.max_rss_pages);
  }
  Process* process = ensure(pid, image_of(sighting),
                            {.action = ProcessAction::exec,
                             .time_ns = record.time_ns,
                             .generation = generation,
                             .followed = is_followed(record)});
  if (process != nullptr) process->max_rss_before = record.max_rss_pages;
}

/// The child of an OCaml process is one, too, with its parent's image. Not looked up in /proc, where it may be running
/// another program already; that program's exec is on its way.
void Discovery::on_fork(const rtev_lifecycle& record) {
  const auto pid = static_cast<std::int32_t>(record.peer);
  const Process* parent = find(static_cast<std::int32_t>(record.tgid));
  if (parent == nullptr) return;
  const bool is_ocaml = parent->index.has_value();
  const ProcessInfo& image = is_ocaml ? registry_.process(*parent->index) : parent->facts;
  if (!wanted(pid, image.comm, is_followed(record))) return listener_.on_untrack(pid);

  Process child{.pid = pid,
                .start_ticks = record.start_time / ns_per_tick,
                .origin = ProcessAction::fork,
                .peer = parent->pid,
                .since_ns = record.time_ns,
                .max_rss_before = 0,
                .facts = image,
                .by_loader = parent->by_loader,
                .exe = parent->exe,
                .inspecting = parent->inspecting,
                .loading = parent->loading,
                .binary = parent->binary};
  child.facts.pid = pid;
  child.facts.ns_pid = procfs_.ns_pid(pid);
  child.facts.start_ticks = child.start_ticks;
  child.facts.exec_generation = 0;
  child.facts.ring = RingState::none;
  child.facts.ring_path.clear();
  child.facts.words = {};
  child.facts.domains = 0;
  if (const Process* known = find(pid)) {
    if (known->start_ticks == child.start_ticks) return;
    end(pid, record.time_ns, exit_unseen);
  }
  Process& process = processes_.insert_or_assign(pid, std::move(child)).first->second;
  if (process.loading) loading_.insert(pid);
  if (!is_ocaml) return;
  adopt(process);
  track(process);
}

void Discovery::on_exit(const rtev_lifecycle& record) {
  const auto pid = static_cast<std::int32_t>(record.tgid);
  const std::uint64_t start_ticks = record.start_time / ns_per_tick;
  ended_.insert_or_assign(pid, start_ticks);
  const Process* process = find(pid);
  // Otherwise the pid has a new owner, whom the scan found before this record was read.
  if (process != nullptr && process->start_ticks == start_ticks)
    end(pid, record.time_ns, static_cast<std::int64_t>(record.detail), record.max_rss_pages);
}

void Discovery::on_ring(Sighting& sighting) {
  const rtev_lifecycle& record = sighting.record;
  const auto pid = static_cast<std::int32_t>(record.tgid);
  if (!sighting.image.file && sighting.places.program && find(pid) == nullptr) {
    // The process is gone, but hardly its program.
    if (auto program = open_left_behind(procfs_, *sighting.places.program)) {
      sighting.image.file = std::move(program->fd);
      sighting.image.exe = std::move(program->path);
    }
  }
  Process* process = ensure(
      pid, image_of(sighting),
      {.action = ProcessAction::found, .time_ns = record.time_ns, .has_ring = true, .followed = is_followed(record)});
  if (process == nullptr) return listener_.on_untrack(pid);
  Births::Birth birth{.time_ns = record.time_ns,
                      .comm = std::string(comm_of(record)),
                      .pins = std::move(sighting.rings),
                      .place = std::move(sighting.places.ring),
                      .program = std::move(sighting.places.program),
                      .clock_offset_ns = sighting.places.clock_offset_ns,
                      .over = sighting.over,
                      .found_ns = process->since_ns > record.time_ns ? process->since_ns : 0};
  if (try_birth(*process, birth)) return track(*process);
  births_.add(pid, std::move(birth));
}

/// The uprobes tell what the ring does not: a pause is never written to it, and a stop that is not followed by the
/// process's end would go unnoticed.
void Discovery::on_probe(const rtev_lifecycle& record) {
  Process* process = find(static_cast<std::int32_t>(record.tgid));
  if (process == nullptr || !process->index) return;
  // Whatever the runtime does to its ring now, the ring is ready: it must be known before it is said to be paused.
  births_.look_at(process->pid, [&](Births::Birth& birth) {
    if (!try_birth(*process, birth)) return false;
    track(*process);
    return true;
  });
  RingState& state = registry_.process(*process->index).ring;
  const auto change = [&](RingState to, ProcessAction action) {
    if (state == RingState::none || state == RingState::shared || state == RingState::probed || state == to) return;
    state = to;
    emit(*process, record.time_ns, action);
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

void Discovery::tick(std::uint64_t now_ns, std::uint64_t told_until_ns) {
  told_until_ns_ = std::max(told_until_ns_, told_until_ns);
  take_inspected();
  look_for_libraries(now_ns);
  for (const Vanished& vanished : std::exchange(vanished_, {})) {
    const Process* process = find(vanished.pid);
    if (process == nullptr || process->start_ticks != vanished.start_ticks) continue;
    if (told_until_ns > vanished.noticed_ns || now_ns > vanished.noticed_ns + exit_patience_ns)
      end(vanished.pid, now_ns, exit_unseen);
    else
      vanished_.push_back(vanished);
  }
  if (!vanished_.empty()) next_look_at_vanished_ns_ = now_ns + exit_look_interval_ns;
  std::erase_if(ghosts_, [&](const Process& ghost) { return now_ns > ghost.since_ns + naming_patience_ns; });
  births_.look(now_ns, [&](std::int32_t pid, Births::Birth& birth, bool is_last) {
    Process* process = find(pid);
    if (process == nullptr) return true;
    if (is_last) birth.found_ns = 0;
    // A program that took its ring down may live on.
    if (!try_birth(*process, birth) && !(is_last && open_drained(*process, birth, now_ns, false))) return false;
    track(*process);
    return true;
  });
}

std::optional<std::uint64_t> Discovery::next_look_ns() const {
  std::optional<std::uint64_t> next = births_.next_look_ns();
  if (!vanished_.empty()) next = std::min(next.value_or(forever), next_look_at_vanished_ns_);
  for (const std::int32_t pid : loading_) {
    const auto found = processes_.find(pid);
    if (found != processes_.end() && found->second.loading)
      next = std::min(next.value_or(forever), found->second.loading->due_ns);
  }
  return next;
}

void Discovery::take_inspected() {
  for (const FileIdentity& file : inspector_.take_inspected()) {
    const auto binary = cache_.find(file).value_or(nullptr);
    const std::size_t aborted = std::erase(aborted_, file);
    if (binary) aborted_without_ring_ += aborted;
    std::vector<std::int32_t> waiting;
    for (const auto& [pid, process] : processes_) {
      if (process.inspecting == file) waiting.push_back(pid);
    }
    for (const std::int32_t pid : waiting) {
      if (!resolve(processes_.at(pid), binary)) processes_.erase(pid);
    }
    std::erase_if(ghosts_, [&](Process& ghost) {
      if (ghost.inspecting != file) return false;
      ghost.binary = binary;
      describe(ghost);
      return true;
    });
  }
}

bool Discovery::is_inspecting() const {
  return std::ranges::any_of(processes_, [](const auto& entry) { return entry.second.inspecting.has_value(); });
}

std::optional<std::uint64_t> Discovery::unnamed_since(std::uint64_t now_ns) const {
  std::optional<std::uint64_t> since;
  const auto consider = [&](const Process& process) {
    if (process.inspecting && process.index && now_ns < process.since_ns + naming_patience_ns)
      since = std::min(since.value_or(process.since_ns), process.since_ns);
  };
  for (const auto& [pid, process] : processes_) consider(process);
  for (const Process& ghost : ghosts_) consider(ghost);
  return since;
}

void Discovery::note_memory() {
  std::size_t left = Registry::remembered;
  for (const auto& [pid, process] : processes_) {
    if (!process.index) continue;
    if (left-- == 0) return;
    const auto bytes = procfs_.max_rss_bytes(pid);
    // Only then known to be this process's: its number may have a new owner.
    if (bytes && is_alive(process)) registry_.process(*process.index).max_rss_bytes = *bytes;
  }
}

std::set<std::uint32_t> Discovery::binaries_in_use() const {
  std::set<std::uint32_t> ids;
  for (const auto& [pid, process] : processes_) {
    if (process.binary) ids.insert(process.binary->id);
  }
  return ids;
}

std::optional<Discovery::Tenant> Discovery::tenant(std::int32_t pid) const {
  const auto found = processes_.find(pid);
  if (found == processes_.end() || !found->second.index) return std::nullopt;
  const Process& process = found->second;
  return Tenant{.index = *process.index,
                .began_ns = process.origin == ProcessAction::found ? process.exec_ns : process.since_ns,
                .since_ns = process.since_ns};
}

std::vector<Discovery::Ringless> Discovery::ringless(std::uint32_t binary_id) const {
  std::vector<Ringless> found;
  for (const auto& [pid, process] : processes_) {
    if (const auto ringless = as_ringless(process); ringless && ringless->binary == binary_id)
      found.push_back(*ringless);
  }
  return found;
}

std::optional<Discovery::Ringless> Discovery::ringless_process(std::int32_t pid) const {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? std::nullopt : as_ringless(found->second);
}

std::optional<Discovery::Ringless> Discovery::as_ringless(const Process& process) {
  if (!process.index || !process.slots.empty() || !process.binary) return std::nullopt;
  return Ringless{.index = *process.index,
                  .binary = process.binary->id,
                  .since_ns = process.since_ns,
                  .newborn = process.origin != ProcessAction::found,
                  .forked = process.origin == ProcessAction::fork};
}

std::set<std::uint32_t> Discovery::ringless_binaries() const {
  std::set<std::uint32_t> ids;
  for (const auto& [pid, process] : processes_) {
    if (process.binary && process.slots.empty()) ids.insert(process.binary->id);
  }
  return ids;
}

bool Discovery::wanted(std::int32_t pid, const std::string& comm, bool followed) const {
  if (pid == ::getpid() || (options_.only_followed && !followed)) return false;
  if (!options_.pids.empty() && std::ranges::find(options_.pids, pid) == options_.pids.end()) return false;
  const auto matches = [&](const std::string& glob) { return ::fnmatch(glob.c_str(), comm.c_str(), 0) == 0; };
  return options_.name_globs.empty() || std::ranges::any_of(options_.name_globs, matches);
}

Discovery::Process* Discovery::find(std::int32_t pid) {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? nullptr : &found->second;
}

}  // namespace rtev
