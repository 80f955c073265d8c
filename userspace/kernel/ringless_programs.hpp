// SPDX-License-Identifier: MIT
// The BPF programs behind --ringless: loaded beside the others, attached to binaries one by one.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bpf/records.h"
#include "kernel/uprobe_link.hpp"
#include "rtev/error.hpp"

namespace rtev::kernel {

struct RinglessOptions {
  std::uint64_t limit = 100'000;  ///< events a second that a process may make
  int followed_map_fd = -1;       ///< Programs::followed_map_fd(), for processes in it only; -1: for all
  std::vector<pid_t> pids{};      ///< only these, if any
  bool uprobe_multi = true;       ///< where the kernel has it; false: as if it had not
};

/// Where to probe a function that writes events, in one binary.
struct EmitterSite {
  rtev_emitter emitter;
  std::uint64_t file_offset;
};

/// The programs. Belongs to one thread, but for describe(), forget() and attach(), which any thread may
/// call.
class RinglessPrograms {
 public:
  static Result<RinglessPrograms> load(const RinglessOptions& options);
  RinglessPrograms(RinglessPrograms&&) noexcept;
  RinglessPrograms& operator=(RinglessPrograms&&) noexcept;
  ~RinglessPrograms();

  /// Tells what the probes must know of a binary, before it is probed (again).
  Result<void> describe(std::uint32_t binary_id, const rtev_ringless_binary& binary);
  /// It will not be probed for now.
  void forget(std::uint32_t binary_id);
  /// Probes a binary in all processes that run it, or in those of RinglessOptions::pids. All sites or an error.
  Result<std::vector<UprobeLink>> attach(int binary_fd, std::uint32_t binary_id, std::span<const EmitterSite> sites);

  /// Readable when the buffer is filling up, when a process made too many events, and once after arm_wakeup().
  int fd() const;
  /// Calls the consumer for what waits: of one thread in order, else nearly so.
  void drain(const std::function<void(const rtev_probed&)>& consumer);
  /// Has the next event wake the reader. Call before sleeping long, then drain once more.
  void arm_wakeup();

  /// Nothing more of the process that made an event then, until it runs another program. If it does so already, or
  /// has ended, nothing happens.
  void silence(pid_t tgid, std::uint64_t time_ns);

  /// Events that found no room in the buffer.
  std::uint64_t dropped() const;
  /// Events whose domain could not be told, or of more processes than are followed at once.
  std::uint64_t homeless() const;

 private:
  struct State;
  explicit RinglessPrograms(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rtev::kernel
