// SPDX-License-Identifier: MIT
// Lifecycle records with what has to be opened while their process still exists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bpf/records.h"
#include "inspect/process_view.hpp"

namespace rtev {

/// A lifecycle record, with what was looked up for it.
struct ResolvedRecord {
  rtev_lifecycle record;
  Image image{};                            ///< of exec and ring records
  std::vector<OpenedRing> rings{};          ///< of ring records: the announced one
  RingRecordFiles files{};                  ///< of ring records
  std::optional<OpenedRing> placed_ring{};  ///< of ring records: see ProcessView
  std::string ring_path{};                  ///< of ring records, if the ring is not mapped
  /// False if nothing was looked up, or the answer did not come in time.
  bool answered = false;
  /// Of ring records: the image had ended when `rings` was looked up, or soon after.
  bool image_ended = false;
};

/// The name of the record's process: any bytes.
std::string_view comm_of(const rtev_lifecycle& record);

/// Sets ResolvedRecord::image_ended, in the order of the records. Looking up continues after a record was
/// read, so if the image had ended by then, the record of that follows in the same batch: what was opened for the
/// ring record may belong to the next image.
void mark_ended_images(std::span<ResolvedRecord> events);

/// The announced ring of a ring record; nothing if its files are not known.
std::optional<AnnouncedRing> announced_ring(const rtev_lifecycle& record, const RingRecordFiles& files);

/// Decides what to look up for records. One thread.
class LifecycleLookup {
 public:
  /// Events that are not processed yet.
  struct Waiting {
    std::size_t all = 0;
    std::size_t of_user = 0;
  };
  /// What to look up for an event; nothing if its record says all. If many wait, less is opened and kept, so that a
  /// stuck main thread does not use up descriptors and memory.
  std::optional<ProcessQuery> query_for(ResolvedRecord& event, std::span<const std::byte> tail, const Waiting& waiting);
  /// Adds the answer.
  void add(ResolvedRecord& event, ProcessView view);

 private:
  /// Rings that were not found, in a window of time.
  struct NotFound {
    std::uint64_t since_ns = 0;
    unsigned rings = 0;
  };
  bool may_look_for_ring(const rtev_lifecycle& record);

  std::uint32_t last_ring_tgid_ = 0;
  std::uint64_t last_ring_ns_ = 0;
  std::map<std::uint32_t, NotFound> not_found_;  ///< by user
};

}  // namespace rtev
