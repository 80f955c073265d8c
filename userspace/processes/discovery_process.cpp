// SPDX-License-Identifier: MIT
// One process, from the first sight of it to its end. How processes come into sight is in discovery.cpp.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "inspect/loader.hpp"
#include "processes/discovery.hpp"
#include "processes/ring_file_lookup.hpp"
#include "processes/tracking.hpp"

namespace rtev {
namespace {

/// Rings of one image; more are no OCaml program's.
constexpr std::size_t most_rings = 16;

/// A program's libraries are mapped within a millisecond, unless something holds it up.
constexpr std::uint64_t shortest_loading_wait_ns = 500'000, longest_loading_wait_ns = 1'000'000'000;

}  // namespace

/// The process, if it is one to follow; begins to find out about it when it is new. All ways but fork lead here.
Discovery::Process* Discovery::ensure(std::int32_t pid, Image image, const Origin& origin) {
  if (Process* known = find(pid)) {
    if (image.start_ticks == known->start_ticks) {
      known->has_ring |= origin.has_ring;
      if (known->has_ring && !known->index) adopt(*known);
      return known;
    }
    end(pid, origin.time_ns, exit_unseen);  // the pid was given to another process
  }
  if (!wanted(pid, image.comm, origin.followed)) return nullptr;

  Process& process = processes_[pid];
  process = {.pid = pid,
             .start_ticks = image.start_ticks,
             .origin = origin.action,
             .since_ns = origin.time_ns,
             .has_ring = origin.has_ring,
             .by_loader = is_loader_path(image.exe)};
  process.facts.pid = pid;
  process.facts.ns_pid = image.ns_pid;
  process.facts.start_ticks = image.start_ticks;
  process.facts.exec_generation = origin.generation;
  process.facts.comm = std::move(image.comm);
  process.facts.exe = std::move(image.exe);
  force_version(process.facts);
  if (process.has_ring) adopt(process);
  if (inspect(process, std::move(image.file))) return &process;
  processes_.erase(pid);
  return nullptr;
}

/// Finds out about a file that may hold the process's runtime, at once or later. False if there is nothing to wait
/// for: the process is not OCaml's.
bool Discovery::inspect(Process& process, Result<UniqueFd> file) {
  if (!file || !*file) return resolve(process, nullptr);
  const auto identity = BinaryCache::identify(file->get());
  if (!identity) return resolve(process, nullptr);
  if (!process.exe) process.exe = *identity;
  if (const auto known = cache_.find(*identity)) {
    if (*known) inspector_.prepare(std::move(*file), *known);
    return resolve(process, *known);
  }
  if (!inspector_.inspect(std::move(*file), *identity, process.has_ring)) return resolve(process, nullptr);
  process.inspecting = *identity;
  return true;
}

/// Goes on once a file of the process is known. False if the process turned out not to be OCaml's.
bool Discovery::resolve(Process& process, const std::shared_ptr<const Binary>& binary) {
  process.inspecting.reset();
  if (!process.index && !options_.even_gone && !is_alive(process)) return false;  // it wrote nothing and nobody saw it
  if (binary && !binary->runtime.elsewhere) {
    process.binary = binary;
    if (!process.index) adopt(process);
    // The ring may have been given another name. Only what is known to be OCaml's is searched for it, and not what
    // announced its ring: by now it may be the next program's.
    if (process.slots.empty() && !process.has_ring && process.origin == ProcessAction::found)
      open_rings(process, pin_shared_files(procfs_, process.pid), process.since_ns, {.newborn = scanned_});
    describe(process);
    track(process);
    return true;
  }
  if (!process.has_ring && !binary && !process.by_loader) return false;
  // It has a ring, or needs a shared runtime, so its runtime must be somewhere: in a library, else unknown. Or a loader
  // is all that was looked into.
  if (!process.library_tried) return find_runtime(process, binary);
  if (!process.has_ring) return false;
  track(process);
  return true;
}

/// Goes on with the shared runtime of a process, whose program asks for one if it is given; before that, with the
/// program that a loader runs.
bool Discovery::find_runtime(Process& process, const std::shared_ptr<const Binary>& program) {
  for (const Mapping& mapping : procfs_.mappings(process.pid)) {
    if (!(process.by_loader ? is_loaded_program(mapping) : is_runtime_library(mapping))) continue;
    // The program may ask for a shared runtime in its turn.
    if (!std::exchange(process.by_loader, false)) process.library_tried = true;
    process.loading.reset();
    return inspect(process, procfs_.open_mapping(process.pid, mapping));
  }
  if ((program || process.by_loader) && !process.has_ring) {
    const std::uint64_t wait =
        process.loading ? std::min(2 * process.loading->wait_ns, longest_loading_wait_ns) : shortest_loading_wait_ns;
    process.loading = {.program = program, .due_ns = monotonic_ns() + wait, .wait_ns = wait};
    loading_.insert(process.pid);
    return true;
  }
  process.library_tried = true;
  process.loading.reset();
  track(process);
  return true;
}

void Discovery::look_for_libraries(std::uint64_t now_ns) {
  std::erase_if(loading_, [&](std::int32_t pid) {
    Process* const process = find(pid);
    if (process == nullptr || !process->loading) return true;
    if (now_ns < process->loading->due_ns && !process->has_ring) return false;
    const auto program = process->loading->program;
    if (!resolve(*process, program)) processes_.erase(pid);
    return false;
  });
}

void Discovery::force_version(ProcessInfo& facts) const {
  const auto family = family_of_version(options_.forced_version);
  if (!family) return;
  facts.version = options_.forced_version;
  facts.family = *family;
  facts.family_source = FamilySource::forced;
}

/// From here on the process is part of the stream.
void Discovery::adopt(Process& process) {
  process.index = registry_.add_process(std::move(process.facts));
  emit(process, process.since_ns, process.origin, process.peer);
}

/// Adds what the binary tells to the facts.
void Discovery::describe(Process& process) {
  if (!process.binary) return;
  ProcessInfo& facts = registry_.process(*process.index);
  if (facts.ring == RingState::active && has_paused_events(process.pid, procfs_, process.binary->runtime))
    facts.ring = RingState::paused;
  if (!process.binary->runtime.family) return;
  if (facts.family_source == FamilySource::forced) return;
  facts.version = process.binary->runtime.version;
  facts.family = *process.binary->runtime.family;
  facts.family_source = FamilySource::symbols;
}

bool Discovery::is_alive(const Process& process) const {
  const auto stat = procfs_.stat(process.pid);
  if (!stat || stat->start_ticks != process.start_ticks) return false;
  return (stat->state != 'Z' && stat->state != 'X') || !procfs_.survivors(process.pid).empty();
}

void Discovery::track(const Process& process) {
  rtev_tracked tracked = process.binary ? tracking_of(process.pid, procfs_, *process.binary) : rtev_tracked{};
  if (!process.slots.empty()) tracked.slot = process.slots.back();
  listener_.on_track(process.pid, tracked);
  if (is_alive(process)) return;
  // The kernel side reports the exits of tracked processes and forgets them; this one was faster.
  listener_.on_untrack(process.pid);
  vanished_.push_back({process.pid, process.start_ticks, monotonic_ns()});
}

/// Begins to read rings of the process. False if none is new and ready.
bool Discovery::open_rings(Process& process, const std::vector<PinnedRing>& pins, std::uint64_t time_ns,
                           const RingOpener::Origin& origin) {
  if (!process.index || process.slots.size() >= most_rings) return false;
  const auto rings = opener_.open(*process.index, pins, origin);
  for (const RingOpener::Ring& ring : rings) {
    process.files.push_back(ring.file);
    process.slots.push_back(ring.slot);
    ProcessInfo& facts = registry_.process(*process.index);
    if (facts.ring != RingState::shared) facts.ring = RingState::active;
    facts.ring_path = ring.pin->path;
    facts.domains = ring.reader->active_domains();
    if (facts.family_source == FamilySource::assumed && ring.reader->layout().names_offset == 0) {
      // Only 5.0 leaves no room for the names of user events.
      facts.version = "5.0";
      facts.family = Family::before_5_3;
      facts.family_source = FamilySource::ring;
    }
    emit(process, time_ns, ProcessAction::ring, 0, ring.reader->layout().rings);
    listener_.on_ring(*process.index, ring.slot, ring.reader);
    if (origin.made_ns != 0)
      process.birth_ns = origin.made_ns;
    else
      watch_found(process, *ring.pin, time_ns);
  }
  return !rings.empty();
}

/// Has the kernel side watch over a ring that, as far as is known, it has not seen.
void Discovery::watch_found(Process& process, const PinnedRing& pin, std::uint64_t time_ns) {
  const auto open = procfs_.open_file(pin.fd.get());
  if (!open || pin.length == 0) return;
  process.birth_ns = time_ns;
  rtev_ring ring{};
  ring.announced_ns = time_ns;
  ring.inode = open->inode;
  ring.length = pin.length;
  ring.address = pin.begin;
  listener_.on_found(process.pid, ring);
}

/// True if the process maps the ring of another one as its own: their pid namespaces differ, but neither their numbers
/// nor their directory. A forked child that still maps its parent's ring maps one of another number.
bool Discovery::note_shared(Process& process, const std::vector<PinnedRing>& pins) {
  if (!process.index) return false;
  ProcessInfo& facts = registry_.process(*process.index);
  bool shared = false;
  for (const PinnedRing& pin : pins) {
    const auto owner = opener_.owner(pin);
    if (!owner || owner == process.index || ring_number(pin.path) != facts.ns_pid) continue;
    ProcessInfo& others = registry_.process(*owner);
    const Process* other = find(others.pid);
    if (other == nullptr || other->index != owner || !is_alive(*other)) continue;  // its end is not known yet
    shared = true;
    facts.ring = others.ring = RingState::shared;
    facts.ring_path = pin.path;
  }
  return shared;
}

/// The scan may have been faster.
bool Discovery::reads(const Process& process, const std::vector<PinnedRing>& pins) {
  return std::ranges::any_of(pins, [&](const PinnedRing& pin) {
    const auto file = RingOpener::identify(pin.fd.get());
    return file && std::ranges::find(process.files, *file) != process.files.end();
  });
}

bool Discovery::try_birth(Process& process, Births::Birth& birth) {
  // Until that end, which says which events are its own, or until it is clear that there was none.
  if (birth.over || birth.found_ns > told_until_ns_) return false;
  const RingOpener::Origin origin{.newborn = true, .made_ns = birth.time_ns, .clock_offset_ns = birth.clock_offset_ns};
  const auto is_open = [&] {
    if (!open_rings(process, birth.pins, birth.time_ns, origin) && !reads(process, birth.pins)) return false;
    process.birth_ns = birth.time_ns;
    listener_.on_announced(process.pid, birth.time_ns);
    return true;
  };
  if (is_open()) return true;
  // What was pinned may have been another ring, of the parent of a forked process.
  if (auto pins = pin_rings(procfs_, process.pid); !pins.empty()) birth.pins = std::move(pins);
  return is_open() || note_shared(process, birth.pins);
}

/// What was saved of a ring when it was taken down, or before another program could take it over.
bool Discovery::open_drained(Process& process, const Births::Birth& birth, std::uint64_t ended_ns, bool by_exec) {
  auto drained = listener_.take_drained(process.pid, birth.time_ns, ended_ns);
  if (!drained) return false;
  if (by_exec && !drained->last) births_.give_up();  // other threads may have written since
  std::string path;
  if (birth.place) {
    const auto candidates = find_candidates(*birth.place, procfs_.mounts());
    path = candidates.empty() ? birth.place->path : candidates.front().path();
  }
  std::vector<PinnedRing> rings;
  rings.push_back({.fd = std::move(drained->fd), .path = std::move(path), .cut = std::move(drained->cut)});
  return open_rings(process, rings, birth.time_ns,
                    {.newborn = true, .made_ns = birth.time_ns, .clock_offset_ns = birth.clock_offset_ns});
}

/// The ring of an image that ended before it could be read: what was held fast is still there, and what was not was
/// saved as it was taken down, or stays behind on disk when asked to and whenever its program did not end by exit(3).
bool Discovery::open_last_ring(Process& process, const Births::Birth& birth, std::uint64_t ended_ns, bool by_exec) {
  process.birth_ns = birth.time_ns;
  const RingOpener::Origin origin{
      .newborn = true, .made_ns = birth.time_ns, .ended_ns = ended_ns, .clock_offset_ns = birth.clock_offset_ns};
  if (open_rings(process, birth.pins, birth.time_ns, origin) || reads(process, birth.pins) ||
      note_shared(process, birth.pins))
    return true;
  if (open_drained(process, birth, ended_ns, by_exec)) return true;
  if (!birth.place || !is_ring_path(birth.place->path)) return false;
  auto file = open_left_behind(procfs_, *birth.place);
  if (!file) return false;
  std::vector<PinnedRing> rings;
  rings.push_back({.fd = std::move(file->fd), .path = std::move(file->path)});
  return open_rings(process, rings, birth.time_ns, origin);
}

/// The image is gone, by exit or exec; its rings are read to their end.
void Discovery::end_image(Process& process, std::uint64_t time_ns, bool by_exec) {
  if (const auto birth = births_.take(process.pid); birth && !open_last_ring(process, *birth, time_ns, by_exec))
    births_.give_up();
  const std::int32_t pid = process.pid;
  if (process.index) conclude(process, time_ns, by_exec);
  processes_.erase(pid);
}

/// Nothing comes from the image any more but what its rings hold.
void Discovery::conclude(Process& process, std::uint64_t time_ns, bool by_exec) {
  for (const RingOpener::FileId& file : process.files) opener_.release(*process.index, file);
  ProcessInfo& facts = registry_.process(*process.index);
  facts.ended = true;
  listener_.on_image_end(*process.index, process.slots, process.birth_ns, time_ns, by_exec);
  facts.ring = after_end(facts.ring);
  if (process.inspecting) ghosts_.push_back(std::move(process));
}

/// The program of an image that has ended.
void Discovery::find_program(Process& process, const FilePlace& place) {
  auto program = open_left_behind(procfs_, place);
  if (!program) return;
  const auto identity = BinaryCache::identify(program->fd.get());
  if (!identity) return;
  process.facts.exe = std::move(program->path);
  if (const auto known = cache_.find(*identity))
    process.binary = *known;
  else if (inspector_.inspect(std::move(program->fd), *identity, true))
    process.inspecting = *identity;
}

/// The scan found a process that ran its next program already, and only now that program's exec is told. What was
/// announced before is the ring of the image that the exec ended: that image was never seen, but what was held fast or
/// saved of its ring is there.
void Discovery::add_image_before(const Process& process, Births::Birth& birth, std::uint64_t ended_ns) {
  const ProcessInfo& later = process.index ? registry_.process(*process.index) : process.facts;
  Process before{.pid = process.pid, .start_ticks = process.start_ticks, .since_ns = birth.time_ns, .has_ring = true};
  before.facts.pid = process.pid;
  before.facts.ns_pid = later.ns_pid;
  before.facts.start_ticks = process.start_ticks;
  before.facts.comm = std::move(birth.comm);
  force_version(before.facts);
  if (birth.program) find_program(before, *birth.program);
  adopt(before);
  describe(before);
  // The next image took the file over where it reads it already; what was in it then is only where it was saved.
  if (reads(process, birth.pins)) birth.pins.clear();
  if (!open_last_ring(before, birth, ended_ns, true)) births_.give_up();
  emit(before, ended_ns, ProcessAction::exit, 0, exit_by_exec);
  conclude(before, ended_ns, true);
}

/// With the most pages that the process had, this image and those before it taken together; 0: not known.
void Discovery::end(std::int32_t pid, std::uint64_t time_ns, std::int64_t status, std::uint32_t max_rss_pages) {
  Process* process = find(pid);
  if (process == nullptr) return;
  // Where an earlier image had more, nothing tells what this one had.
  if (process->index && process->max_rss_before && max_rss_pages > *process->max_rss_before)
    registry_.process(*process->index).max_rss_bytes =
        max_rss_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (process->index) emit(*process, time_ns, ProcessAction::exit, 0, status);
  note_abort(*process, status);
  end_image(*process, time_ns, status == exit_by_exec);
}

/// OCaml's runtime ends a program that shall write events and cannot make its ring.
void Discovery::note_abort(const Process& process, std::int64_t status) {
  if (status < 0 || !WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || process.has_ring) return;
  // Enough for the sentence that comes of it.
  constexpr std::size_t most_inspected = 1024;
  if (process.binary)
    ++aborted_without_ring_;
  else if (process.inspecting && aborted_.size() < most_inspected)
    aborted_.push_back(*process.inspecting);
}

void Discovery::emit(const Process& process, std::uint64_t time_ns, ProcessAction action, std::int32_t peer,
                     std::int64_t detail) {
  listener_.on_process(time_ns, action, {.process = *process.index, .peer = peer, .detail = detail});
}

}  // namespace rtev
