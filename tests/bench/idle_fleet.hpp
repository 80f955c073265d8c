// SPDX-License-Identifier: MIT
// Many processes with rings, idle or writing at a rate.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/unique_fd.hpp"
#include "rtev/ring_writer.hpp"
#include "support/temp_dir.hpp"

namespace rtev::bench {

/// Forked processes with ring files like OCaml's: 128 rings, e=16. They write bursts of one minor collection each:
/// hundreds of writers with a wakeup for each event would measure the kernel's timers (rtev-load does that).
class Fleet {
 public:
  /// Name of the processes.
  static constexpr const char* name = "rtev-fleet";

  struct Size {
    std::uint32_t processes = 1;
    std::uint32_t domains = 1;  ///< per process; each has a thread while it writes
    /// Further threads of each process, which sleep and together wake this often a second while it writes.
    std::uint32_t sleepers = 0;
    std::uint32_t wakes_per_second = 5000;
  };
  /// Returns when all rings exist.
  explicit Fleet(Size size);
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;
  /// Ends all processes.
  ~Fleet();

  struct Done {
    std::uint64_t events;
    std::uint64_t wakes;  ///< of sleepers
  };
  /// Lets all processes write, at this total rate, and returns when all are done. Call once; the processes stay, idle.
  Done write(double events_per_second, double seconds);

 private:
  struct Shared;
  [[noreturn]] void run(std::uint32_t process);
  void write_domain(RingWriter& writer, std::uint32_t process, std::uint32_t domain);
  void sleep_often(std::uint32_t sleeper);
  void end_all();

  Size size_;
  test::TempDir directory_;
  Shared* shared_;
  UniqueFd gate_in_, gate_out_, status_in_, status_out_;
  std::vector<pid_t> pids_;
};

}  // namespace rtev::bench
