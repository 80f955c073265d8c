// SPDX-License-Identifier: MIT
// Processes without a ring, and BPF programs that attach to nothing, for tests of ring-less tracing.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/timed_tasks.hpp"
#include "inspect/binary_cache.hpp"
#include "kernel/uprobe_manager.hpp"
#include "processes/process_table.hpp"

namespace rtev::test {

/// The id of the binary that is probed.
inline constexpr std::uint32_t probed_id = 7;

inline constexpr std::uint64_t milli = 1'000'000, second = 1'000'000'000;  // in ns

/// Every binary can be probed. A link is any open descriptor.
class FakeUprobePrograms : public kernel::UprobePrograms {
 public:
  Result<kernel::AttachedUprobes> probe(int, std::uint32_t binary, const kernel::ProbePlan&, std::uint32_t) override {
    probed.push_back(binary);
    kernel::AttachedUprobes attached;
    attached.links.emplace_back(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
    return attached;
  }
  void forget(std::uint32_t) override {}

  std::vector<std::uint32_t> probed;  ///< binaries, in order
};

/// The background thread: tasks wait until run_all().
class TaskQueue {
 public:
  void add(std::function<bool()> task) { tasks_.push_back(std::move(task)); }
  void run_all() {
    for (; !tasks_.empty(); tasks_.pop_front()) tasks_.front()();
  }

 private:
  std::deque<std::function<bool()>> tasks_;
};

/// A binary with all that probes need.
inline Binary probed_binary(std::uint32_t id) {
  Binary binary{.id = id, .runtime = {}};
  binary.runtime.version = "5.3";
  binary.runtime.domain_self_tls = 8;
  binary.runtime.emitters = {{.emitter = RTEV_EMIT_BEGIN, .file_offset = 64, .address = 64, .enabled = 8}};
  return binary;
}

/// Processes of the stream that have no ring.
class RinglessWorld {
 public:
  /// One that came into view at this time: by an exec, unless `origin` says otherwise.
  ProcessIndex add(std::int32_t pid, std::uint32_t binary, std::uint64_t since_ns,
                   ProcessAction origin = ProcessAction::exec, std::uint32_t user = 0) {
    ProcessInfo info;
    info.pid = pid;
    TracedProcess process{.pid = pid, .user = user, .origin = origin, .since_ns = since_ns};
    process.index = registry.add_process(std::move(info));
    process.program.binary = std::make_shared<const Binary>(probed_binary(binary));
    return *table.insert(std::move(process)).index;
  }

  Registry registry;
  ProcessTable table{[](std::int32_t) { return true; }, registry};
  FakeUprobePrograms programs;
  TaskQueue tasks;
  TimedTasks timed;
};

}  // namespace rtev::test
