// SPDX-License-Identifier: MIT
// Reads Perfetto traces as a viewer does, with another library than the one that wrote them, and complains like one.
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
  std::int32_t pid = 0;  ///< of a process or thread, or of the process above
  std::int32_t tid = 0;  ///< 0 for no thread
  bool is_process = false, is_counter = false;
  std::string unit{};
  std::int32_t rank = 0;
  std::vector<PerfettoSlice> slices{};  ///< in order of their beginnings
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
  /// All that a viewer would complain of, or show other than it was: empty for a good trace.
  std::vector<std::string> errors{};
  std::size_t packets = 0, bytes_left = 0;  ///< bytes behind the last whole packet
  std::size_t losses = 0;                   ///< packets that say that others were dropped before them
  std::size_t restarts = 0;                 ///< times names were to be forgotten
  std::string kernel{};
  std::map<std::uint32_t, std::uint64_t> clocks{};  ///< by clock id
  std::map<std::uint64_t, PerfettoTrack> tracks{};  ///< by uuid
  std::map<std::int32_t, std::string> processes{};  ///< names by pid
  std::map<std::int32_t, PerfettoThread> threads{};
  std::vector<PerfettoSwitch> switches{};  ///< by time
  std::vector<PerfettoWaking> wakings{};
  std::vector<std::int32_t> freed{};  ///< tids

  /// Tracks in order of their uuids: all of that name.
  std::vector<const PerfettoTrack*> named(std::string_view name) const;
  /// The first of them; an empty track if there is none.
  const PerfettoTrack& track(std::string_view name) const;
  const PerfettoTrack& thread(std::int32_t pid, std::int32_t tid) const;
  std::string all_errors() const;
};

/// A trace whose recording goes on, or was cut: spans may still be open.
enum class Ending : bool { complete, open };

PerfettoTrace read_perfetto(std::string_view file, Ending ending = Ending::complete);

}  // namespace rtev::test
