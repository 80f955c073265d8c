// SPDX-License-Identifier: MIT
// Copies the stream into chunks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "flight/kept_chunk.hpp"
#include "stream/registry.hpp"

namespace rtev::flight {

/// Fills one chunk after the other. Entries of the Registry are copied when an event first refers to them, as they may
/// be gone when the chunk is closed. One thread.
class ChunkBuilder {
 public:
  /// A chunk is full from this size on, in bytes.
  explicit ChunkBuilder(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Adds events from the first one on. Returns how many: fewer than all if the chunk is full, or if a slot that it has
  /// stands for another process now. Then close() has to be called.
  std::size_t add(const Batch& batch, const Registry& registry);
  bool is_full() const { return bytes() >= max_bytes_; }
  bool is_empty() const { return events_.empty(); }
  std::size_t bytes() const { return events_.size() * sizeof(Event) + payloads_.size() + metadata_bytes_; }

  /// The chunk so far, without its times and figures. `registry` is that of the last add(), or null.
  Chunk close(const Registry* registry);
  /// Gives the memory of an unused chunk to the next one: fresh memory is slow.
  void reuse(Chunk&& chunk);

 private:
  struct Slot {
    std::uint64_t chunk = 0, batch = 0;  ///< that saw it last
    ProcessIndex process = 0;
  };

  bool see_slot(std::uint32_t slot, const Registry& registry);
  void see_process(ProcessIndex index, const Registry& registry);
  void see_name(std::uint32_t slot, std::uint16_t id, const Registry& registry);
  void see_thread(const Thread& thread);
  void see_payload(const Event& event, std::span<const std::byte> payload, const Registry& registry);
  void add_stacks(Chunk& chunk, const StackTable& table);
  std::shared_ptr<const ProcessInfo> shared(ProcessIndex index, const ProcessInfo& info);

  std::size_t max_bytes_;
  std::uint64_t chunk_ = 1, batch_ = 0;
  std::vector<Event> events_, spare_events_;
  std::vector<std::byte> payloads_, spare_payloads_;
  std::size_t metadata_bytes_ = 0;

  std::vector<Slot> slots_;
  std::vector<Chunk::Ring> rings_;
  std::unordered_map<ProcessIndex, std::shared_ptr<const ProcessInfo>> processes_;  ///< of this chunk
  std::unordered_map<ProcessIndex, std::shared_ptr<const ProcessInfo>> shared_;     ///< of the last ones
  std::size_t sweep_at_ = 1024;
  std::array<std::uint64_t, 4096> recent_names_{};
  std::unordered_set<std::uint32_t> named_;  ///< slot and id
  std::vector<Chunk::Name> names_;
  std::unordered_map<std::int32_t, std::uint32_t> users_;  ///< by pid, of processes that run
  std::unordered_map<std::int32_t, std::uint32_t> pids_;   ///< those of switches of this chunk
  std::unordered_set<StackIndex> stacks_;
  std::vector<StackIndex> unresolved_;  ///< stacks of earlier chunks that were not known then
};

}  // namespace rtev::flight
