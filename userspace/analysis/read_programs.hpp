// SPDX-License-Identifier: MIT
// Of which processes events were read: what they would tell of the others is unknown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stream/registry.hpp"

namespace rtev {

enum class EventsRead : std::uint8_t {
  yes,     ///< or they would have been if it had written any
  off,     ///< it has no ring, or has paused its events: they are off
  unread,  ///< it has a ring, which is not read
};
inline constexpr std::size_t events_read_count = 3;
EventsRead events_read(const ProcessInfo& process);

/// A program needs that long at most to make its ring: before, it is unknown whether its events are off.
inline constexpr std::uint64_t max_start_ns = 100'000'000;

/// How many processes there were by that.
struct ReadPrograms {
  std::uint64_t read = 0, unread = 0;
  std::uint64_t off = 0;    ///< without those that ended, or had just begun
  std::uint64_t ended = 0;  ///< those of which no ring is known: most are forks that ran another program

  void add(EventsRead events, bool is_short) {
    ++(events == EventsRead::yes ? read : events == EventsRead::unread ? unread : is_short ? ended : off);
  }
  /// There were some, and nothing was read of any.
  bool is_none() const { return read == 0 && off + unread + ended > 0; }
};

/// After "events are off".
inline constexpr std::string_view how_to_read = "; --enable switches them on, --ringless traces without";

/// Of none of them: "events of the program are off; --enable switches them on, --ringless traces without".
std::string why_none_read(const ReadPrograms& programs);
/// The same of some of them, as a sentence; else nothing.
std::string why_some_unread(const ReadPrograms& programs);

/// Counts them. A fold over the stream. Memory is bounded. One thread.
class ReadProgramCount {
 public:
  void add(const Event& event, const Batch& batch, const Registry& registry);
  ReadPrograms programs(const Registry& registry) const;

 private:
  static constexpr std::size_t max_running = std::size_t{1} << 16;

  struct Ended {
    ProcessIndex index;
    std::int32_t pid;  ///< to tell whether the index is used again
  };
  std::unordered_map<ProcessIndex, std::uint64_t> running_;  ///< since when; 0: since before the stream
  std::uint64_t last_ns_ = 0;
  ReadPrograms ended_;            ///< without the next
  std::vector<Ended> ended_off_;  ///< that a ring was missed is known later, in a recording at its end
};

}  // namespace rtev
