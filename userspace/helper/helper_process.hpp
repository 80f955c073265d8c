// SPDX-License-Identifier: MIT
// The helper process looks at other processes for the tracer. What it asks the kernel may take long or never be
// answered (a page or a file of a file system that hangs), and a process that waits for that cannot even be killed. So
// the tracer itself never asks, and a helper that does not return is left behind.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

namespace rtev::helper {

/// How soon a worker runs once it has something to do.
enum class Priority : std::uint8_t {
  lowered,    ///< after most other processes: for queries that may take long
  raised,     ///< before most other processes
  real_time,  ///< before every ordinary process: for queries that take a few microseconds. Longer ones are lowered
};

/// Closes all descriptors but these and the standard ones.
void close_but(std::vector<int> kept);

/// Has the calling process, just forked by the tracer, leave everything of it but its rights, own_proc() and the
/// channel: its descriptors, its terminal, its signals. Whoever waits for the end of the tracer's output must not wait
/// for a process that hangs.
void leave_tracer(int channel);

/// A process that forks workers, each of which answers the queries of one channel until that is closed. It has no
/// descriptor of the tracer. Start it before there are BPF programs and threads. Thread-safe.
class HelperProcess {
 public:
  /// Which rights of the tracer its workers keep. To look into a process of the same user they must have all that it
  /// has, unless they have CAP_SYS_PTRACE.
  enum class Rights : std::uint8_t { needed, all };
  static Result<HelperProcess> start(Rights rights = Rights::needed);
  HelperProcess(HelperProcess&& other) noexcept
      : control_(std::move(other.control_)), pid_(std::exchange(other.pid_, -1)), end_(std::move(other.end_)) {}
  HelperProcess& operator=(HelperProcess&&) = delete;
  /// Ends the process. Workers that hang are left behind.
  ~HelperProcess();

  /// Readable (epoll) if the process has ended: then no further worker can start.
  int end_fd() const { return end_.get(); }

  /// A new worker: send it queries (ProcessQuery, and its Priority) and receive answers, one after the other:
  /// ProcessView, the CPU time that it took (std::uint64_t, ns), and whether the worker ends (bool): a real-time worker
  /// does so after a query that was not answered in real time.
  Result<UniqueFd> start_worker(Priority priority) const;

  /// A process that closes files, also after the end of the tracer. It answers once when it is ready. From then on it
  /// answers each message with descriptors, once they are closed: that is after the next message, or at the end of the
  /// channel, so that the tracer can close its own ones before.
  Result<UniqueFd> start_closer() const;

  /// A process that closes the links of uprobes, also after the end of the tracer. Send it messages (LinksMessage), and
  /// after each one, once the tracer has closed its own descriptors, an empty one. It does not answer. It waits until
  /// the mappings of a file allow it, for as long as it takes.
  Result<UniqueFd> start_link_closer() const;

 private:
  enum class Task : std::uint8_t { queries, files, links };
  static void serve(int control, Rights rights);
  Result<UniqueFd> start(Task task, Priority priority) const;

  HelperProcess(UniqueFd control, pid_t pid);

  UniqueFd control_;
  pid_t pid_;
  UniqueFd end_;
};

}  // namespace rtev::helper
