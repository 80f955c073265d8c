// SPDX-License-Identifier: MIT
#include "processes/lifecycle_lookup.hpp"

#include <algorithm>
#include <ranges>
#include <set>

namespace rtev {
namespace {

/// Waiting events that hold open files. The rings of later ones can still be read if they stay on disk.
constexpr std::size_t max_opened = 256;

/// Waiting events that hold paths of files, which may be long.
constexpr std::size_t max_placed = 8192;

/// The record of a ring is written right before its mapping exists: looked for again at this interval, this often.
constexpr std::uint64_t mapping_retry_ns = 50'000;
constexpr int mapping_tries = 10;

/// A process maps its ring once. One that announces another so soon is left to the main thread, which has more time.
constexpr std::uint64_t ring_interval_ns = 2'000'000;

}  // namespace

std::string_view comm_of(const rtev_lifecycle& record) {
  const std::string_view bytes(record.comm, sizeof record.comm);
  return bytes.substr(0, bytes.find('\0'));
}

void mark_ended_images(std::span<LifecycleEvent> events) {
  std::set<std::uint32_t> ended;
  for (LifecycleEvent& event : std::views::reverse(events)) {
    const rtev_lifecycle& record = event.record;
    if (record.type == RTEV_EXEC || record.type == RTEV_EXIT) ended.insert(record.tgid);
    if (record.type == RTEV_RING) event.image_ended = ended.contains(record.tgid);
  }
}

LifecycleEvent LifecycleLookup::look_up(const rtev_lifecycle& record, std::span<const std::byte> tail,
                                        std::size_t waiting) {
  LifecycleEvent event{.record = record, .image = {}, .rings = {}, .files = {}, .image_ended = false};
  if (record.type == RTEV_RING && waiting < max_placed) event.files = parse_ring_record(tail);
  if (waiting < max_opened) open(event);
  return event;
}

void LifecycleLookup::open(LifecycleEvent& event) {
  const rtev_lifecycle& record = event.record;
  const auto pid = static_cast<std::int32_t>(record.tgid);
  if (record.type == RTEV_RING) {
    const bool again = record.tgid == last_ring_tgid_ && record.time_ns - last_ring_ns_ < ring_interval_ns;
    last_ring_tgid_ = record.tgid;
    last_ring_ns_ = record.time_ns;
    for (int tries = 0; !again && event.rings.empty() && tries < mapping_tries; ++tries) {
      if (tries > 0) callbacks_.wait(mapping_retry_ns);
      event.rings = open_mapped_rings(procfs_, pid);
    }
    if (holds_announced(event)) callbacks_.ring_opened(pid, record.time_ns);
    if (!again) event.image = open_image(procfs_, pid);
  } else if (record.type == RTEV_EXEC) {
    event.image = open_image(procfs_, pid);
    // It may run the next program already, whose record is on its way.
    const auto stat = procfs_.stat(pid);
    if (stat && std::string_view(stat->comm) != comm_of(record)) event.image.file.reset();
  }
}

/// False if what is mapped is still another ring: that of the parent of a forked process.
bool LifecycleLookup::holds_announced(const LifecycleEvent& event) const {
  return event.files.ring && std::ranges::any_of(event.rings, [&](const OpenedRing& ring) {
           const auto open = procfs_.open_file(ring.fd.get());
           return open && open->inode == event.files.ring->inode;
         });
}

}  // namespace rtev
