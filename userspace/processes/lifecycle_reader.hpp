// SPDX-License-Identifier: MIT
// Hears of processes as they live and die, on a thread that does nothing else: the shortest of programs has its ring
// for two milliseconds, and the main thread may be writing to a slow terminal just then.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/event_fd.hpp"
#include "bpf/records.h"
#include "inspect/file_place.hpp"
#include "processes/opened_ring.hpp"

namespace rtev {

/// A record of the kernel side, with what could be held fast of the process it is about.
struct Sighting {
  rtev_lifecycle record;
  Image image;                    ///< of exec and ring records
  std::vector<PinnedRing> rings;  ///< of ring records
  BirthPlaces places;             ///< of ring records
  bool over = false;              ///< of ring records: the image had ended when `rings` was looked for, or soon after
};

/// The name of the record's process: any bytes.
std::string_view comm_of(const rtev_lifecycle& record);

/// The thread, and the queue of what it saw.
class Lookout {
 public:
  using Consumer = std::function<void(const rtev_lifecycle&, std::span<const std::byte> tail)>;
  /// Where records come from: readable while some wait, and a function that drains them. Where to say that the ring
  /// which a process announced is held fast. Used by the thread only.
  struct Records {
    int fd;
    std::function<void(const Consumer&)> drain;
    std::function<void(std::int32_t pid, std::uint64_t birth_ns)> opened;
  };

  Lookout(Procfs procfs, Records records);
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;
  ~Lookout();

  /// Readable (epoll) while sightings wait.
  int event_fd() const { return event_.get(); }
  /// Set while the thread has records in hand that take() does not give yet: since when. None of them can be much
  /// older.
  std::optional<std::uint64_t> busy_since() const {
    const std::uint64_t since = busy_since_.load();
    return since == 0 ? std::nullopt : std::optional(since);
  }
  /// All that the kernel side has told so far can be taken.
  bool has_caught_up() const;
  /// Waits until all that the kernel side has told can be taken, but not for ever.
  void catch_up() const;
  /// What was seen since the last call, in order.
  std::vector<Sighting> take();
  /// Takes what records wait, then ends the thread. take() still works.
  void stop();

 private:
  void run();
  void see(const rtev_lifecycle& record, std::span<const std::byte> tail);
  void pin(Sighting& sighting);
  bool holds_announced(const Sighting& sighting) const;
  void publish();
  bool has_room();

  Procfs procfs_;
  Records records_;
  EventFd event_;
  EventFd stop_;
  std::atomic<std::uint64_t> busy_since_ = 0;  ///< 0: idle
  std::mutex mutex_;
  std::vector<Sighting> seen_;
  // Of the thread's own:
  std::vector<Sighting> batch_;
  bool saw_any_ = false;
  std::uint32_t last_ring_tgid_ = 0;
  std::uint64_t last_ring_ns_ = 0;
  std::thread thread_;
};

}  // namespace rtev
