// SPDX-License-Identifier: MIT
// OCaml's own readers, each in its own process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "live/child_process.hpp"

namespace rtev::bench {

enum class PeerKind : std::uint8_t { c, ocaml };
std::string_view name_of(PeerKind kind);

/// Cost of reading a ring that is not being written, summed over the readings of one round.
struct Decoded {
  std::uint64_t ns = 0;  ///< CPU time of the polls alone
  std::uint64_t events = 0;
  std::uint64_t time_sum = 0;  ///< of times modulo 2^63 (OCaml's integers); the same for all readers
};

/// Reads a ring that is not being written, repeatedly.
class DecodingPeer {
 public:
  DecodingPeer(PeerKind kind, const std::filesystem::path& directory, pid_t pid, int cpu);
  Decoded round(int times, bool touched);

 private:
  test::Process process_;
};

/// Result of following a live ring.
struct Followed {
  std::uint64_t events = 0;
  std::uint64_t lost_words = 0;
  std::uint64_t polls = 0;
  std::uint64_t failed_polls = 0;  ///< "corrupt stream": how that reader reports being overtaken
  std::uint64_t cpu_ns = 0;
};

/// Follows a live ring from construction to stop().
class FollowingPeer {
 public:
  /// interval_us 0: polls without pause.
  FollowingPeer(PeerKind kind, const std::filesystem::path& directory, pid_t pid, int cpu, int interval_us);
  Followed stop();

 private:
  test::Process process_;
};

/// The plainest tracer that OCaml's API allows: polls a ring at an interval and writes each event to a file.
class WritingPeer {
 public:
  WritingPeer(const std::filesystem::path& directory, pid_t pid, int interval_us, const std::filesystem::path& file);
  std::uint64_t cpu_ns() const;
  /// Returns the number of lost words.
  std::uint64_t stop();

 private:
  test::Process process_;
};

}  // namespace rtev::bench
