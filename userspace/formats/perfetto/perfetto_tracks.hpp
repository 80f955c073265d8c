// SPDX-License-Identifier: MIT
// Tracks as Perfetto wants them described: processes, threads, rings' own tracks, counters.
#pragma once

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

/// Numbers tracks, and describes them before they are used. Threads that only the scheduler mentions get their names
/// and their process, but no track. Memory is bounded by what is in use.
class Tracks {
 public:
  explicit Tracks(PacketStream& packets) : packets_(packets) {}

  void name_process(std::uint64_t time, std::int32_t pid, std::string_view name);
  void name_track(std::uint64_t time, const Track& track);
  void forget(const Track& track);

  /// A thread's track, or a ring's own.
  std::uint64_t id_of(std::uint64_t time, const Track& track) {
    return track.id == last_track_ ? last_id_ : find(time, track);
  }
  /// The counter of an event, a track of the process. The track is where the event belongs.
  std::uint64_t counter_of(const Track& track, const EventContext& context);
  /// For what belongs to no process.
  std::uint64_t recording(std::uint64_t time);

 private:
  /// A counter of one domain, for numbers of domains are used again.
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
    std::uint64_t id = 0;  ///< of its track; 0 while it has none
    std::string name{};
    std::uint32_t tracks = 0;
    std::vector<CounterKey> counters{};
  };

  std::uint64_t find(std::uint64_t time, const Track& track);
  std::uint64_t process_id(std::uint64_t time, std::int32_t pid);
  void describe(std::uint64_t time, const Track& track, std::uint64_t id);
  void remember(std::vector<CounterKey>& known, const CounterKey& key);
  void describe_process(std::uint64_t time, std::int32_t pid, const Process& process);

  PacketStream& packets_;
  std::unordered_map<std::int32_t, Process> processes_;      ///< by pid
  std::unordered_map<std::uint32_t, std::uint64_t> tracks_;  ///< by Track::id; 0 while not described
  std::unordered_map<CounterKey, std::uint64_t, CounterHash> counters_;
  std::uint64_t next_id_ = 1, recording_ = 0;
  std::uint32_t last_track_ = 0;  ///< events come in runs
  std::uint64_t last_id_ = 0;
};

}  // namespace rtev::perfetto
