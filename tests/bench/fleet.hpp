// SPDX-License-Identifier: MIT
// Many processes with rings, that write at a rate or do nothing.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/unique_fd.hpp"
#include "rtev/ring_writer.hpp"
#include "support/temp_dir.hpp"

namespace rtev::bench {

/// Forked processes with files as OCaml's: 128 rings, e=16. What they write comes in bursts of one minor collection
/// each, since hundreds of writers that wake for each event would measure the kernel's timers (rtev-load does that).
class Fleet {
 public:
  /// What its processes are called.
  static constexpr const char* name = "rtev-fleet";

  struct Size {
    std::uint32_t processes = 1;
    std::uint32_t domains = 1;  ///< of each process, a thread each once they write
  };
  /// Returns once every ring is there.
  explicit Fleet(Size size);
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;
  /// The end of all processes.
  ~Fleet();

  /// Lets them write, so many events a second all together, and returns how many they wrote once all have done so.
  /// Once only: they stay, but have nothing more to say.
  std::uint64_t write(double events_per_second, double seconds);

 private:
  struct Shared;
  [[noreturn]] void run(std::uint32_t process);
  void write_domain(RingWriter& writer, std::uint32_t process, std::uint32_t domain);
  void end_all();

  Size size_;
  test::TempDir directory_;
  Shared* shared_;
  UniqueFd gate_in_, gate_out_, told_in_, told_out_;
  std::vector<pid_t> pids_;
};

}  // namespace rtev::bench
