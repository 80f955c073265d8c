// SPDX-License-Identifier: MIT
// Lifecycle records with what has to be opened while their process still exists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "bpf/records.h"
#include "inspect/file_place.hpp"
#include "inspect/process_files.hpp"
#include "inspect/procfs.hpp"

namespace rtev {

/// A lifecycle record, with what was looked up for it.
struct LifecycleEvent {
  rtev_lifecycle record;
  Image image;                    ///< of exec and ring records
  std::vector<OpenedRing> rings;  ///< of ring records
  RingRecordFiles files;          ///< of ring records
  /// Of ring records: the image had ended when `rings` was looked up, or soon after.
  bool image_ended = false;
};

/// The name of the record's process: any bytes.
std::string_view comm_of(const rtev_lifecycle& record);

/// Sets LifecycleEvent::image_ended, for events in the order of their records. Looking up continues after a record was
/// read, so if the image had ended by then, the record of that follows in the same batch: what was opened for the
/// ring record may belong to the next image.
void mark_ended_images(std::span<LifecycleEvent> events);

/// Opens files of the processes that records are about. One thread.
class LifecycleLookup {
 public:
  struct Callbacks {
    /// The ring that the process announced at this time is open.
    std::function<void(std::int32_t pid, std::uint64_t announced_ns)> ring_opened;
    /// Waits for so many ns, for a mapping that does not exist yet.
    std::function<void(std::uint64_t)> wait;
  };
  LifecycleLookup(Procfs procfs, Callbacks callbacks) : procfs_(std::move(procfs)), callbacks_(std::move(callbacks)) {}

  /// `tail` is what follows the record in an RTEV_RING record. `waiting`: events that are not processed yet; if there
  /// are many, less is opened and kept, so that a stuck main thread does not use up descriptors and memory.
  LifecycleEvent look_up(const rtev_lifecycle& record, std::span<const std::byte> tail, std::size_t waiting);

 private:
  void open(LifecycleEvent& event);
  bool holds_announced(const LifecycleEvent& event) const;

  Procfs procfs_;
  Callbacks callbacks_;
  std::uint32_t last_ring_tgid_ = 0;
  std::uint64_t last_ring_ns_ = 0;
};

}  // namespace rtev
