// SPDX-License-Identifier: MIT
// What began before the part of the stream that is kept, and goes on in it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flight/kept_chunk.hpp"

namespace rtev::flight {

/// A fold over chunks that are dropped: open phases and user spans, last values of counters, processes and the state of
/// their rings. Threads need nothing: each switch says who they are. Spans that libraries mark by events of their own
/// (LibrarySpans) are not known. Memory is bounded. One thread.
class WindowState {
 public:
  /// `chunk` follows the one before it.
  void add(const Chunk& chunk);
  /// What a tracer that begins at `begin_ns` would find of the programs of users for whom `wants` is true, as events
  /// before the others: with their own times, but those of processes and rings, which are found then.
  Chunk as_chunk(std::uint64_t begin_ns, const std::function<bool(std::uint32_t user)>& wants) const;

  static constexpr std::size_t max_open = 256;  ///< spans of a ring; beyond, the outer half is forgotten
  static constexpr std::size_t max_kept = std::size_t{1} << 18;  ///< events in all; beyond, further ones are not kept
  static constexpr std::size_t counter_ids = 128;

 private:
  struct Ring {
    std::vector<Event> open{};      ///< begins, outermost first
    std::vector<Event> counters{};  ///< the last one of each id
    bool spawned = false;
  };
  struct Slot {
    Chunk::Ring info{};
    int wait_phase = -1;                                     ///< a phase that does not nest with others
    std::vector<std::unique_ptr<Ring>> rings{};              ///< by domain
    std::unordered_map<std::uint16_t, std::string> names{};  ///< of user events that began open spans
  };
  struct Process {
    std::shared_ptr<const ProcessInfo> info{};
    bool found = false;  ///< an event says that it is there
    std::optional<std::pair<Event, ProcessRecord>> ring{}, pausing{};
  };

  void begin_chunk(const Chunk& chunk);
  void add_process(const Event& event, const Chunk& chunk);
  void forget_slot(std::uint32_t slot);
  void open(Ring& ring, const Event& event);
  void close(const Slot& slot, Ring& ring, const Event& end);
  void count(Ring& ring, const Event& event);
  void lifecycle(Slot& slot, Ring& ring, const Event& event);
  void clear(std::vector<Event>& events) {
    kept_ -= events.size();
    events.clear();
  }

  std::vector<std::unique_ptr<Slot>> slots_;
  std::map<ProcessIndex, Process> processes_;
  std::size_t kept_ = 0;
};

}  // namespace rtev::flight
