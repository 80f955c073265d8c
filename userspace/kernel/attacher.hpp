// SPDX-License-Identifier: MIT
// Attaches BPF programs in a process of its own, which keeps the rights that this takes. To attach a uprobe, the kernel
// waits for every fork of the host, and for each process that maps the file. Whoever forks for long, or keeps its
// memory map locked, makes it wait for as long, and a process that waits cannot be killed. So the tracer does not ask
// the kernel itself.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "helper/archive.hpp"
#include "kernel/uprobe_link.hpp"
#include "rtev/error.hpp"

namespace rtev::kernel {

/// The process, which ends with the tracer. Thread-safe.
class Attacher {
 public:
  /// Gives up the rights that are not needed to attach programs, in the process.
  using Confine = Result<void> (*)(bool uprobe_multi);
  /// Forks the process: call it before there are BPF programs and threads.
  static Result<Attacher> start(Confine confine);
  Attacher(Attacher&& other) noexcept : channel_(std::move(other.channel_)), end_(std::move(other.end_)) {}
  Attacher& operator=(Attacher&&) = delete;
  /// Does not wait for the process.
  ~Attacher();

  /// Readable (epoll) if the process has ended: then nothing is attached any more.
  int end_fd() const { return end_.get(); }

  /// To be called once, when it is known how the kernel attaches uprobes.
  void confine(bool uprobe_multi) const;

  /// See AttachUprobes. Waits for a tenth of a second at most. If the kernel takes longer, other requests have to be
  /// repeated until it is done. After more than half a second nothing is attached for a while, since all forks of the
  /// host wait while the kernel does.
  Result<AttachedUprobes> attach(UprobeRequest request);
  /// See AttachTracepoints. Waits as attach() does.
  Result<std::vector<UniqueFd>> attach_tracepoints(std::vector<UniqueFd> programs);
  /// Gives up on what is being attached, before the end.
  void abandon();

 private:
  /// The request that the process works on.
  struct Asked {
    bool tracepoints;
    std::uint32_t binary_id = 0;
    bool all_sites = false;
    bool operator==(const Asked&) const = default;
  };
  Attacher(UniqueFd channel, UniqueFd end) : channel_(std::move(channel)), end_(std::move(end)) {}
  Result<AttachedUprobes> ask(const Asked& asked, const helper::Message& message);
  std::optional<Result<AttachedUprobes>> take_answer(int timeout_ms);
  bool discard_answer();

  std::mutex mutex_;
  UniqueFd channel_, end_;
  std::optional<Asked> asked_;
  std::uint64_t rests_until_ns_ = 0;
};

}  // namespace rtev::kernel
