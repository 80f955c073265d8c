// SPDX-License-Identifier: MIT
// OCaml's own readers, each in a process of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "live/process.hpp"

namespace rtev::bench {

/// False where no OCaml was installed when this was built.
bool have_peers();

enum class PeerKind : std::uint8_t { c, ocaml };
std::string_view name_of(PeerKind kind);

/// What reading a ring at rest took, all readings of one round together.
struct Decoded {
  std::uint64_t ns = 0;  ///< CPU time of the polls alone
  std::uint64_t events = 0;
  std::uint64_t time_sum = 0;  ///< of the events' times, modulo 2^63 (OCaml's numbers): readers must agree on it
};

/// Reads a ring at rest, again and again.
class DecodingPeer {
 public:
  DecodingPeer(PeerKind kind, const std::filesystem::path& directory, pid_t pid, int cpu);
  Decoded round(int times, bool touched);

 private:
  test::Process process_;
};

/// What following a live ring gave.
struct Followed {
  std::uint64_t events = 0;
  std::uint64_t lost_words = 0;
  std::uint64_t polls = 0;
  std::uint64_t failed_polls = 0;  ///< "corrupt stream": that reader's way to be overtaken
  std::uint64_t cpu_ns = 0;
};

/// Follows a live ring from its construction to stop().
class FollowingPeer {
 public:
  /// interval_us 0: polls again at once.
  FollowingPeer(PeerKind kind, const std::filesystem::path& directory, pid_t pid, int cpu, int interval_us);
  Followed stop();

 private:
  test::Process process_;
};

}  // namespace rtev::bench
