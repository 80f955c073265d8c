// SPDX-License-Identifier: MIT
// Descriptions of tracks for Perfetto: processes, threads, rings, counters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/perfetto/perfetto_packets.hpp"
#include "formats/viewer/trace_writer.hpp"

namespace rtev::perfetto {

/// Numbers tracks, and writes a description before the first use. Threads that are only in scheduler events get a name
/// and a process, but no track. Memory is bounded by the tracks in use.
class Tracks {
 public:
  explicit Tracks(PacketWriter& packets) : packets_(packets) {}

  void name_process(std::uint64_t time, std::int32_t pid, std::string_view name);
  void name_track(std::uint64_t time, const Track& track);
  void forget(const Track& track);

  /// The track of a thread or ring.
  std::uint64_t id_of(std::uint64_t time, const Track& track) {
    const Recent& recent = recent_[track.id % recent_.size()];
    return recent.track == track.id ? recent.id : find(time, track);
  }
  /// The counter of an event, which is a track of the process. `track` is that of the event.
  std::uint64_t counter_of(const Track& track, const EventContext& context);
  /// For events that belong to no process.
  std::uint64_t recording(std::uint64_t time);

 private:
  /// A counter of one incarnation of a domain.
  struct CounterKey {
    ProcessIndex process;
    std::uint32_t incarnation;
    std::uint16_t domain, counter;
    bool operator==(const CounterKey&) const = default;
  };
  struct CounterHash {
    std::size_t operator()(const CounterKey& key) const {
      const std::uint64_t small = std::uint64_t{key.incarnation} << 32 | std::uint64_t{key.domain} << 16 | key.counter;
      return std::hash<std::uint64_t>{}(small * 0x9e3779b97f4a7c15 ^ key.process);
    }
  };
  struct Process {
    std::uint64_t id = 0;     ///< of its track; 0 while it has none
    std::uint64_t tasks = 0;  ///< of the track that those of its tasks are grouped under
    std::string name{};
    std::uint32_t tracks = 0;
    std::vector<CounterKey> counters{};
  };

  std::uint64_t find(std::uint64_t time, const Track& track);
  std::uint64_t process_id(std::uint64_t time, std::int32_t pid);
  std::uint64_t group_of_tasks(std::uint64_t time, std::int32_t pid);
  /// `fill` gets the Message<TrackDescriptor>&, which has its id already.
  template <typename Fill>
  void describe(std::uint64_t time, std::uint64_t id, Fill&& fill);
  void describe(std::uint64_t time, const Track& track, std::uint64_t id);
  void remember(std::vector<CounterKey>& known, const CounterKey& key);
  void describe_process(std::uint64_t time, std::int32_t pid, const Process& process);

  PacketWriter& packets_;
  std::unordered_map<std::int32_t, Process> processes_;      ///< by pid
  std::unordered_map<std::uint32_t, std::uint64_t> tracks_;  ///< by Track::id; 0 while not described
  std::unordered_map<CounterKey, std::uint64_t, CounterHash> counters_;
  std::uint64_t next_id_ = 1, recording_ = 0;
  struct Recent {
    std::uint32_t track = 0;
    std::uint64_t id = 0;
  };
  std::array<Recent, 64> recent_{};  ///< some of tracks_, by Track::id: few tracks have most events
};

}  // namespace rtev::perfetto
