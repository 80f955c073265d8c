// SPDX-License-Identifier: MIT
#include "processes/rings/ring_acquisition.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "ring/reader_access.hpp"

namespace rtev {
namespace {

/// Rings of one image; a process with more is not an OCaml program.
constexpr std::size_t max_image_rings = 16;

/// BPF wakes the reader each time that such a part of a ring has been filled. It looks when a thread leaves its cpu,
/// and at each tick of the kernel: with fewer parts the rest of the ring could be full at the next one.
constexpr std::uint64_t parts_of_ring = 8;

/// How long the rings of a user are distrusted after one was missed.
constexpr std::uint64_t distrust_ns = 1'000'000'000;

std::uint64_t& count_of(Unreadable why, MissedRings& missed) {
  switch (why) {
    case Unreadable::file_system:
      return missed.file_system;
    case Unreadable::no_answer:
      return missed.no_answer;
    case Unreadable::memory:
      return missed.memory;
    case Unreadable::other_user:
      return missed.other_user;
    case Unreadable::too_large:
      return missed.too_large;
  }
  std::unreachable();
}

/// In the memory of the process, as far as it is known where it maps the ring.
ImageRings::Indices indices_of(const RingOpener::Ring& ring) {
  if (ring.opened->begin == 0) return {};
  const Layout& layout = RingReaderAccess::layout(*ring.reader);
  return {.address = ring.opened->begin + layout.headers_offset,
          .stride = static_cast<std::uint32_t>(layout.ring_header_stride),
          .part_shift = static_cast<std::uint32_t>(
              std::bit_width(std::max<std::uint64_t>(layout.ring_words / parts_of_ring, 1)) - 1)};
}

bool has_too_many(const TracedProcess& process) {
  return process.rings.slots.size() >= max_image_rings;
}

}  // namespace

bool RingAcquisition::open_found(TracedProcess& process, const std::vector<OpenedRing>& rings, std::uint64_t time_ns,
                                 bool created_now) {
  return open(process, rings, time_ns, {.is_new = created_now});
}

/// Begins to read rings of the process, or says that it does not. False if none is new and ready.
bool RingAcquisition::open(TracedProcess& process, const std::vector<OpenedRing>& rings, std::uint64_t time_ns,
                           const RingOpener::Origin& origin) {
  if (!process.index || has_too_many(process)) return false;
  const auto opened = opener_.open(*process.index, process.user, rings, origin);
  if (const auto refusal = opener_.refusal(); opened.empty() && refusal) {
    mark_unreadable(process, rings.front().path, time_ns, *refusal);
    return true;
  }
  for (const RingOpener::Ring& ring : opened) {
    process.rings.files.push_back(ring.file);
    process.rings.slots.push_back(ring.slot);
    process.rings.indices = indices_of(ring);
    ProcessInfo& info = context_.registry.process(*process.index);
    if (info.ring != RingState::shared) info.ring = RingState::active;
    info.ring_path = ring.opened->path;
    info.domains = ring.reader->active_domains();
    if (info.family_source == FamilySource::assumed && !ring.reader->layout().has_names) {
      // Only OCaml 5.0 leaves no room for the names of user events.
      info.version = "5.0";
      info.family = Family::before_5_3;
      info.family_source = FamilySource::ring;
    }
    context_.events.on_process(time_ns, ProcessAction::ring,
                               {.process = *process.index, .peer = 0, .detail = ring.reader->layout().rings});
    context_.events.on_ring(*process.index, ring.slot, ring.reader);
    if (origin.created_ns != 0) process.rings.announced_ns = origin.created_ns;
    note_mapped(process, ring, time_ns, origin.created_ns != 0);
  }
  return !opened.empty();
}

/// Remembers a ring that was opened through a mapping. If it was not announced, as far as is known, has BPF watch it.
void RingAcquisition::note_mapped(TracedProcess& process, const RingOpener::Ring& ring, std::uint64_t time_ns,
                                  bool announced) {
  const OpenedRing& opened = *ring.opened;
  if (opened.inode == 0) return;
  process.rings.mapped.push_back({.inode = opened.inode, .opened_ns = ring.opened_ns});
  if (announced) return;
  process.rings.announced_ns = time_ns;
  rtev_ring found{};
  found.announced_ns = time_ns;
  found.inode = opened.inode;
  found.length = opened.length;
  found.address = opened.begin;
  context_.kernel.ring_found(process.pid, found);
}

bool RingAcquisition::mark_shared(TracedProcess& process, const std::vector<OpenedRing>& rings) {
  if (!process.index) return false;
  ProcessInfo& info = context_.registry.process(*process.index);
  bool shared = false;
  for (const OpenedRing& ring : rings) {
    const auto owner = opener_.owner(ring);
    // A forked child that still maps its parent's ring maps one of another number.
    if (!owner || owner == process.index || ring_number(ring.path) != info.ns_pid) continue;
    ProcessInfo& others = context_.registry.process(*owner);
    const TracedProcess* const other = context_.processes.find(others.pid);
    // Else its end has not been reported yet.
    if (other == nullptr || other->index != owner || !context_.processes.is_alive(*other)) continue;
    shared = true;
    info.ring = others.ring = RingState::shared;
    info.ring_path = ring.path;
  }
  return shared;
}

/// True if the process has the announced ring open: the scan may have been faster than the announcement. Without this
/// the saved copy of that ring would be read as well, or the ring counted as missed.
bool RingAcquisition::has_open(const TracedProcess& process, const PendingRing& ring) const {
  // What was opened before the announcement is another ring, also in the same file.
  const auto is_open = [&](const OpenedRing& opened) {
    return process.index && opener_.opened_since(opened, *process.index, ring.announced_ns);
  };
  // The process may have been gone when its files were looked up.
  const auto is_mapped = [&](const ImageRings::Mapped& mapped) {
    return mapped.inode == ring.announced->place.inode && mapped.opened_ns >= ring.announced_ns;
  };
  return std::ranges::any_of(ring.opened, is_open) ||
         (ring.announced && std::ranges::any_of(process.rings.mapped, is_mapped));
}

bool RingAcquisition::announce(TracedProcess& process, PendingRing ring) {
  const auto missed = missed_of_users_.find(process.user);
  ring.distrusted = missed != missed_of_users_.end() && context_.clock() - missed->second < distrust_ns;
  if (try_open(process, ring)) return true;
  // While it waits it holds what was found, and what it is tried with later.
  ring.charge = opener_.charge_descriptors(process.user, process.pid, ring.opened.size() + 1);
  if (!ring.charge) {
    if (context_.processes.info(process).ring != RingState::none) miss(process);
    mark_unreadable(process, ring.path, ring.announced_ns, Unreadable::memory);
    return true;
  }
  if (!pending_.add(process.pid, std::move(ring))) miss(process);
  return false;
}

bool RingAcquisition::open_pending(TracedProcess& process) {
  bool opened = false;
  pending_.retry_now(process.pid, [&](PendingRing& ring) { return opened = try_open(process, ring); });
  return opened;
}

void RingAcquisition::retry(std::uint64_t now_ns, const std::function<void(const TracedProcess&)>& opened) {
  pending_.retry(now_ns, [&](std::int32_t pid, PendingRing& ring, bool is_last) {
    TracedProcess* const process = context_.processes.find(pid);
    if (process == nullptr) return true;
    // A program that took its ring down may live on.
    if (try_open(*process, ring) || (is_last && open_saved(*process, ring, now_ns, false))) {
      opened(*process);
      return true;
    }
    if (is_last) miss(*process);
    return false;
  });
}

bool RingAcquisition::try_open(TracedProcess& process, PendingRing& ring) {
  if (ring.image_ended) return false;  // when that is taken, it decides which events belong to the image
  if (mark_unreadable(process, ring.opened, ring.announced_ns)) return true;
  const RingOpener::Origin origin{
      .is_new = true, .created_ns = ring.announced_ns, .clock_offset_ns = ring.clock_offset_ns()};
  const auto is_open = [&] {
    if (!open(process, ring.opened, ring.announced_ns, origin) && !has_open(process, ring)) return false;
    process.rings.announced_ns = ring.announced_ns;
    context_.kernel.ring_opened(process.pid, ring.announced_ns);
    return true;
  };
  if (is_open()) return true;
  if (has_too_many(process)) {
    miss(process);
    return true;
  }
  if (mark_shared(process, ring.opened)) return true;
  // A distrusted one is looked for only when PendingRings says that it is its turn.
  const bool waits_for_its_turn = ring.distrusted && ring.first_try_ns == 0;
  if (ring.opened.empty() && !waits_for_its_turn) look_again(process, ring);
  return false;
}

/// The ring was not found when it was announced: its process had not mapped it yet, or the answer did not come in time.
void RingAcquisition::look_again(const TracedProcess& process, PendingRing& ring) {
  if (ring.asked || !ring.announced) return;
  ring.asked = true;
  context_.queries.ask({.pid = process.pid, .announced_ring = ring.announced}, process.user,
                       [this, pid = process.pid, announced_ns = ring.announced_ns](ProcessView view) {
                         PendingRing* const pending = pending_.find(pid, announced_ns);
                         if (pending == nullptr) return;
                         pending->asked = false;
                         if (TracedProcess* const silent = context_.processes.find(pid);
                             view.no_answer && silent != nullptr) {
                           mark_unreadable(*silent, pending->path, announced_ns, Unreadable::no_answer);
                           pending_.take(pid);
                           return;
                         }
                         pending->placed = std::move(view.placed_ring);
                         if (view.rings.empty()) return;
                         pending->opened = std::move(view.rings);
                         pending->next_try_ns = 0;
                       });
}

bool RingAcquisition::mark_unreadable(TracedProcess& process, const std::vector<OpenedRing>& rings,
                                      std::uint64_t time_ns) {
  const auto ring = std::ranges::find_if(rings, [](const OpenedRing& candidate) { return !candidate.fd; });
  if (!process.index || ring == rings.end()) return false;
  mark_unreadable(process, ring->path, time_ns, ring->of_other_user ? Unreadable::other_user : Unreadable::file_system);
  return true;
}

void RingAcquisition::mark_unreadable(TracedProcess& process, const std::string& path, std::uint64_t time_ns,
                                      Unreadable why) {
  if (!process.index) return;
  ProcessInfo& info = context_.registry.process(*process.index);
  if (info.ring != RingState::none) return;
  info.ring = RingState::unreadable;
  info.ring_path = path;
  ++unreadable_;
  ++count_of(why, info.missed);
  context_.events.on_process(time_ns, ProcessAction::unreadable,
                             {.process = *process.index, .peer = 0, .detail = static_cast<std::int64_t>(why)});
}

void RingAcquisition::miss(TracedProcess& process) {
  ++missed_;
  ++context_.processes.info(process).missed.gone;
  const std::uint64_t now = context_.clock();
  std::erase_if(missed_of_users_, [&](const auto& entry) { return now - entry.second >= distrust_ns; });
  missed_of_users_[process.user] = now;
}

/// Opens what BPF saved of a ring when its runtime unmapped it, or before the next program could take its file over.
bool RingAcquisition::open_saved(TracedProcess& process, const PendingRing& ring, std::uint64_t ended_ns,
                                 bool by_exec) {
  auto saved = context_.kernel.take_saved_ring(process.pid, ring.announced_ns, ended_ns);
  if (!saved) return false;
  const bool is_whole = !by_exec || saved->last;
  std::vector<OpenedRing> rings;
  rings.push_back({.fd = std::move(saved->fd), .path = !ring.opened.empty() ? ring.opened.front().path : ring.path});
  if (!open(process, rings, ring.announced_ns,
            {.is_new = true,
             .created_ns = ring.announced_ns,
             .clock_offset_ns = ring.clock_offset_ns(),
             .cut = std::move(saved->cut),
             .memory_bytes = saved->memory_bytes}))
    return false;
  // Words that other threads wrote after the copy are in no account. A ring without memory is counted already.
  if (!is_whole && !opener_.refusal()) miss(process);
  return true;
}

/// Opens the ring of an image that ended before its ring could be opened: what was opened in time, else what BPF saved,
/// else by its place on disk, where the runtime leaves it when asked to, and whenever the program did not end by
/// exit(3).
bool RingAcquisition::open_last(TracedProcess& process, PendingRing& ring, std::uint64_t ended_ns, bool by_exec) {
  process.rings.announced_ns = ring.announced_ns;
  const RingOpener::Origin origin{
      .is_new = true, .created_ns = ring.announced_ns, .ended_ns = ended_ns, .clock_offset_ns = ring.clock_offset_ns()};
  if (mark_unreadable(process, ring.opened, ring.announced_ns) ||
      open(process, ring.opened, ring.announced_ns, origin) || has_open(process, ring) ||
      mark_shared(process, ring.opened))
    return true;
  std::vector<OpenedRing> placed;
  if (ring.placed) placed.push_back(*std::exchange(ring.placed, {}));
  return mark_unreadable(process, placed, ring.announced_ns) || open_saved(process, ring, ended_ns, by_exec) ||
         open(process, placed, ring.announced_ns, origin);
}

void RingAcquisition::end_image(TracedProcess& process, std::uint64_t time_ns, bool by_exec) {
  if (auto ring = pending_.take(process.pid); ring && !open_last(process, *ring, time_ns, by_exec)) miss(process);
}

void RingAcquisition::forget(const TracedProcess& process) {
  for (const RingFileId& file : process.rings.files) opener_.forget(*process.index, file);
}

}  // namespace rtev
