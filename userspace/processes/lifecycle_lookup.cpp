// SPDX-License-Identifier: MIT
#include "processes/lifecycle_lookup.hpp"

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

namespace rtev {
namespace {

/// Waiting events that hold open files, of a user and of all. The rings of later ones can still be read if they stay on
/// disk.
constexpr std::size_t max_opened_of_user = 256, max_opened = 1024;

/// Waiting events of a user that hold paths of files, which may be long.
constexpr std::size_t max_placed = 8192;

/// A process maps its ring once. One that announces another so soon is left to the main thread, which has more time.
constexpr std::uint64_t ring_interval_ns = 2'000'000;

/// Rings of a user that may be looked for in vain in a window of time; further ones are left to the main thread, too. A
/// look takes up to a millisecond of CPU time.
constexpr unsigned max_not_found = 32;
constexpr std::uint64_t not_found_window_ns = 100'000'000;

}  // namespace

std::string_view comm_of(const rtev_lifecycle& record) {
  const std::string_view bytes(record.comm, sizeof record.comm);
  return bytes.substr(0, bytes.find('\0'));
}

void mark_ended_images(std::span<ResolvedRecord> events) {
  std::set<std::uint32_t> ended;
  for (ResolvedRecord& event : std::views::reverse(events)) {
    const rtev_lifecycle& record = event.record;
    if (record.type == RTEV_EXEC || record.type == RTEV_EXIT) ended.insert(record.tgid);
    if (record.type == RTEV_RING) event.image_ended = ended.contains(record.tgid);
  }
}

std::optional<AnnouncedRing> announced_ring(const rtev_lifecycle& record, const RingRecordFiles& files) {
  if (!files.ring) return std::nullopt;
  return AnnouncedRing{.place = *files.ring,
                       .clock_offset_ns = files.clock_offset_ns.value_or(0),
                       .address = files.address,
                       .length = record.detail,
                       .user = record.uid};
}

std::optional<ProcessQuery> LifecycleLookup::query_for(ResolvedRecord& event, std::span<const std::byte> tail,
                                                       const Waiting& waiting) {
  const rtev_lifecycle& record = event.record;
  if (record.type == RTEV_RING) {
    if (waiting.of_user < max_placed) event.files = parse_ring_record(tail);
    if (!may_look_for_ring(record)) return std::nullopt;
  } else if (record.type != RTEV_EXEC) {
    return std::nullopt;
  }
  if (waiting.of_user >= max_opened_of_user || waiting.all >= max_opened) return std::nullopt;
  return ProcessQuery{.pid = static_cast<std::int32_t>(record.tgid),
                      .image = true,
                      .program = event.files.program,
                      .announced_ring = announced_ring(record, event.files)};
}

bool LifecycleLookup::may_look_for_ring(const rtev_lifecycle& record) {
  const bool again = record.tgid == last_ring_tgid_ && record.time_ns - last_ring_ns_ < ring_interval_ns;
  last_ring_tgid_ = record.tgid;
  last_ring_ns_ = record.time_ns;
  std::erase_if(not_found_,
                [&](const auto& entry) { return record.time_ns > entry.second.since_ns + not_found_window_ns; });
  const auto not_found = not_found_.find(record.uid);
  return !again && (not_found == not_found_.end() || not_found->second.rings < max_not_found);
}

void LifecycleLookup::add(ResolvedRecord& event, ProcessView view) {
  event.answered = true;
  // It may run the next program already, whose record is on its way.
  if (event.record.type == RTEV_EXEC && view.stat && std::string_view(view.stat->comm) != comm_of(event.record)) {
    view.image.file.reset();
    view.image.exe.clear();
    view.image.script.clear();
  }
  if (event.record.type == RTEV_RING && view.rings.empty())
    ++not_found_.try_emplace(event.record.uid, NotFound{.since_ns = event.record.time_ns}).first->second.rings;
  event.image = std::move(view.image);
  event.rings = std::move(view.rings);
  event.placed_ring = std::move(view.placed_ring);
  event.ring_path = std::move(view.announced_path);
}

}  // namespace rtev
