// SPDX-License-Identifier: MIT
// Reads lifecycle records on a thread of its own: the shortest of programs has its ring for two milliseconds, and the
// main thread may be blocked by a slow terminal just then.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "bpf/records.h"
#include "helper/process_queries.hpp"
#include "processes/lifecycle_lookup.hpp"

namespace rtev {

/// How long the stream may wait for the look-up of a process. The events of that process wait until it is answered.
inline constexpr std::uint64_t max_hold_ns = 20'000'000;

/// The thread, and the queue of events that it has looked up.
class LifecycleReader {
 public:
  using Consumer = std::function<void(const rtev_lifecycle& record, std::span<const std::byte> tail)>;
  /// Where records come from. Called on the thread only.
  struct Records {
    int fd;                                     ///< readable while records wait
    std::function<void(const Consumer&)> read;  ///< calls the consumer for the records that wait, in order
    /// The ring that the process announced at this time is open.
    std::function<void(std::int32_t pid, std::uint64_t announced_ns)> ring_opened;
  };

  /// `queries` is used on the thread only, and must outlive it.
  LifecycleReader(ProcessQueries& queries, Records records);
  LifecycleReader(const LifecycleReader&) = delete;
  LifecycleReader& operator=(const LifecycleReader&) = delete;
  ~LifecycleReader();

  /// Readable (epoll) while events wait.
  int event_fd() const { return event_.get(); }
  /// Set while the thread has records that take() does not return yet: since when. None of them can be much older.
  std::optional<std::uint64_t> busy_since() const {
    const std::uint64_t since = busy_since_.load();
    return since == 0 ? std::nullopt : std::optional(since);
  }
  /// True if take() returns all that the kernel has reported so far.
  bool has_caught_up() const;
  /// Waits until that is so, but not for long: rings fill up meanwhile.
  void catch_up() const;
  /// The events since the last call. Those of a process are in the order of their records.
  std::vector<ResolvedRecord> take();
  /// Reads the records that wait, then ends the thread, within 0.2 s. take() still works.
  void stop();

 private:
  /// An event whose process is being looked up, or one after it.
  struct Pending {
    std::uint64_t number;  ///< counts events
    ResolvedRecord event;
    std::uint64_t read_ns;
    bool waits;  ///< for the answer to its query
  };
  void run();
  void add(const rtev_lifecycle& record, std::span<const std::byte> tail);
  void take_answer(std::uint64_t number, ProcessView view);
  void publish(std::uint64_t now_ns, bool stopped);
  std::uint64_t max_wait_ns(bool stopped) const;
  int wait_ms(bool has_room, bool stopped) const;
  bool has_room();

  Records records_;
  EventFd event_;
  EventFd stop_;
  std::atomic<std::uint64_t> busy_since_ = 0;  ///< 0: idle
  std::mutex mutex_;
  std::vector<ResolvedRecord> events_;
  std::map<std::uint32_t, std::size_t> waiting_;  ///< events that were not taken, by user
  // Used by the thread only:
  ProcessQueries& queries_;
  LifecycleLookup lookup_;
  std::deque<Pending> pending_;
  std::uint64_t events_read_ = 0;
  bool read_any_ = false;
  std::thread thread_;
};

}  // namespace rtev
