// SPDX-License-Identifier: MIT
// Parses Perfetto traces as a viewer does, with another library than the writer's, and collects errors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rtev::test {

struct PerfettoEvent {
  std::uint64_t time = 0;
  std::string name{};
  std::string category{};
  std::map<std::string, std::string> details{};  ///< debug annotations as text; numbers in decimal, "true"
};

struct PerfettoSlice : PerfettoEvent {
  std::uint64_t end = 0;
  std::size_t depth = 0;
  bool ended = false;
  std::vector<std::uint64_t> flows_out{}, flows_in{};
};

struct PerfettoTrack {
  std::string name{};
  std::uint64_t parent = 0;
  std::int32_t pid = 0;  ///< of a process or thread, or of the parent process
  std::int32_t tid = 0;  ///< 0: not a thread
  bool is_process = false, is_counter = false;
  std::string unit{};
  std::int32_t rank = 0;
  std::vector<PerfettoSlice> slices{};  ///< by begin
  std::vector<PerfettoEvent> instants{};
  std::vector<std::pair<std::uint64_t, std::int64_t>> values{};
};

struct PerfettoSwitch {
  std::uint64_t time = 0;
  std::uint32_t cpu = 0;
  std::int32_t prev = 0, next = 0;
  std::int64_t prev_state = 0;
  std::int32_t prev_prio = 0, next_prio = 0;
  std::string prev_comm{}, next_comm{};
};

struct PerfettoWaking {
  std::uint64_t time = 0;
  std::uint32_t cpu = 0;
  std::int32_t waker = 0, woken = 0, target_cpu = 0;
};

struct PerfettoThread {
  std::int32_t tgid = 0;
  std::string name{};
};

struct PerfettoTrace {
  /// Everything a viewer would report or show wrongly; empty for a good trace.
  std::vector<std::string> errors{};
  std::size_t packets = 0, bytes_left = 0;  ///< bytes after the last whole packet
  std::size_t losses = 0;                   ///< packets that say that earlier ones were dropped
  std::size_t restarts = 0;                 ///< number of resets of interned names
  std::string kernel{};
  std::map<std::uint32_t, std::uint64_t> clocks{};  ///< by clock id
  std::map<std::uint64_t, PerfettoTrack> tracks{};  ///< by uuid
  std::map<std::int32_t, std::string> processes{};  ///< names by pid
  std::map<std::int32_t, PerfettoThread> threads{};
  std::vector<PerfettoSwitch> switches{};  ///< by time
  std::vector<PerfettoWaking> wakings{};
  std::vector<std::int32_t> freed{};  ///< tids

  /// All tracks with that name, ordered by uuid.
  std::vector<const PerfettoTrack*> named(std::string_view name) const;
  /// The first of them; an empty track if there is none.
  const PerfettoTrack& track(std::string_view name) const;
  const PerfettoTrack& thread(std::int32_t pid, std::int32_t tid) const;
  std::string all_errors() const;
};

/// For a trace still being recorded, or cut: spans may be open.
enum class Ending : bool { complete, open };

PerfettoTrace read_perfetto(std::string_view file, Ending ending = Ending::complete);

}  // namespace rtev::test
