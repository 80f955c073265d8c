// SPDX-License-Identifier: MIT
// All rings that are being read: which to read now, and in which order.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/blocked_time.hpp"
#include "base/clock.hpp"
#include "base/cpu_share.hpp"
#include "processes/rings/saved_rings.hpp"
#include "rtev/ring_reader.hpp"
#include "session/live/ring_pace.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// Reads rings that are due, see RingPace. Words are read round-robin: by user, then by ring, so that no user's rings
/// delay those of others. One thread.
class RingPoller {
 public:
  using Consumer = std::function<void(const Batch&)>;

  /// How much may be read of a user's rings, so that what was read is also delivered in time.
  struct Room {
    std::uint64_t words;  ///< in one read of a ring; 0: too many events of the user, or of all, are staged
    bool one_quantum;     ///< one read of each ring: there are other users, or events that could have been delivered
  };
  static constexpr Room any_room{.words = UINT64_MAX, .one_quantum = false}, no_room{.words = 0, .one_quantum = false};
  /// `max_delay_ns`: how old events may be when they are read. `clock` is CLOCK_MONOTONIC, in ns, by which reads and
  /// deadlines are measured.
  RingPoller(Consumer consumer, std::function<Room(uid_t user)> room, std::uint64_t max_delay_ns,
             std::function<std::uint64_t()> clock = monotonic_ns)
      : consumer_(std::move(consumer)), room_(std::move(room)), max_delay_ns_(max_delay_ns), clock_(std::move(clock)) {}

  /// A ring of a process of `user`. The owner of the file may be another one: hard links.
  void add(std::uint32_t slot, ProcessIndex process, uid_t user, std::shared_ptr<RingReader> ring,
           std::uint64_t now_ns);

  /// Asks BPF what it knows of a ring, and reports which ring is read next: see kernel::Programs.
  struct Activity {
    std::function<kernel::RingActivity(std::uint32_t slot)> take;
    std::function<void(std::uint32_t slot)> begin_read = [](std::uint32_t) {};
  };
  /// Which rings poll() reads: those that are due, or also the others whose processes ran, so that what was read can be
  /// delivered. From time to time it reads all of them.
  enum class Which : std::uint8_t { due, active };
  void poll(std::uint64_t now_ns, Which which, const Activity& activity_of);
  /// Up to when the last poll() and those before have read all rings, apart from those that are behind or left alone.
  std::uint64_t read_until_ns() const { return read_until_ns_; }

  /// Reads all rings up to now, and delivers losses that are not finished. For the end of a session, while programs
  /// continue to write. Words that are not read by the deadline stay unread.
  void finish_all(std::uint64_t now_ns, std::uint64_t deadline_ns);

  /// The saved copy of a ring, if there is one.
  using Saved = std::function<std::optional<SavedRingFile>()>;
  /// The program of a ring ended at `ended_ns`: the next one may reuse the file.
  void seal(std::uint32_t slot, std::uint64_t ended_ns);
  /// Reads what the program of a sealed ring left. False if there is no room for all of it now. Of more words than the
  /// rings of a program hold, the rest stays, and so does what exceeds a small ring if programs of the user took too
  /// much time with their ends.
  bool read_last(std::uint32_t slot, std::uint64_t now_ns);
  /// Adds the final figures of a sealed ring to `info` and forgets it. What was not read is lost, but what the file
  /// does not hold any more is read from its saved copy.
  void finish(std::uint32_t slot, std::uint64_t now_ns, ProcessInfo& info, const Saved& saved);
  /// Rings that the next program with the same pid took over before their last read, and that were not saved before:
  /// the number of missing words is unknown.
  std::uint64_t taken_over() const { return taken_over_; }

  /// True if the rings are of several users.
  bool has_several_users() const { return has_several_users_; }
  /// Rings whose processes run, as of the last poll.
  std::size_t running() const { return running_; }
  /// When the next poll has a ring to read; nothing if no process runs.
  std::optional<std::uint64_t> next_poll_ns() const { return next_poll_ns_; }
  /// From where on rings could not be read to their end: later events may still arrive in order.
  std::optional<std::uint64_t> behind_since_ns() const { return behind_since_ns_; }

  /// Brings the figures of the registry up to date.
  void update(Registry& registry);

 private:
  struct Ring {
    std::uint32_t slot;
    ProcessIndex process;
    uid_t user;
    std::shared_ptr<RingReader> reader;
    RingPace pace;
    std::uint32_t used_domains;  ///< as of the last read
    /// Read in any case until then: a thread may have been running when BPF began to watch its process.
    std::uint64_t unwatched_until_ns = 0;
    std::uint64_t quantum_words;        ///< that one read may take
    bool unfinished = false;            ///< the last read left words, or there was none although the program ran
    std::uint64_t read_ns = 0;          ///< when the last read began
    std::uint64_t behind_since_ns = 0;  ///< later events may be unread, or older ones that the last read left
    std::uint64_t known_until_ns = 0;   ///< later events may be unread
    std::uint64_t read_whole_ns = 0;    ///< when that of all domains did
    // A ring with invalid words, or whose pages are not ready, is left alone for a while.
    std::uint64_t pause_ns = 0;
    std::uint64_t paused_until_ns = 0;
    LeftAlone left_alone{};  ///< since the figures were brought up to date; without a pause that goes on
  };
  using Queue = std::deque<Ring*>;
  Ring* find(std::uint32_t slot);
  /// A user for whose rings the reader waited. It may do so again.
  struct Wary {
    CpuShare share;
    std::uint64_t duration_ns = 0;  ///< longer each time
    std::uint64_t until_ns = 0;
  };
  void be_wary(uid_t user, std::uint64_t now_ns);
  bool may_read(uid_t user, std::uint64_t now_ns) const;
  bool is_left_alone(const Ring& ring, std::uint64_t now_ns) const;
  bool is_to_be_read(Ring& ring, Which which, std::uint64_t now_ns);
  std::uint64_t read(Ring& ring, std::uint64_t now_ns, bool all_domains, std::uint64_t max_words);
  void read_round_robin(std::map<uid_t, Queue> waiting, std::uint64_t now_ns);
  void note_behind(const Ring& ring);
  enum class LastRead : std::uint8_t { complete, no_room, stopped };
  LastRead read_out(RingReader& reader, uid_t user, std::uint64_t now_ns);
  bool read_saved(RingReader& reader, uid_t user, std::uint64_t now_ns, const Saved& saved);
  static void end_pause(Ring& ring, std::uint64_t now_ns);
  static void add_figures(Ring& ring, ProcessInfo& info);

  Consumer consumer_;
  std::function<Room(uid_t)> room_;
  std::uint64_t max_delay_ns_;
  std::function<std::uint64_t()> clock_;
  std::vector<Ring> rings_;  ///< by slot; each poll looks at all of them, so they are next to each other
  std::size_t running_ = 0;
  std::optional<std::uint64_t> next_poll_ns_;
  std::uint64_t read_until_ns_ = 0;
  bool has_several_users_ = false;
  std::uint64_t poll_ns_ = 10'000'000;  ///< how long poll() may read
  std::optional<std::uint64_t> behind_since_ns_;
  BlockedTime blocked_;
  std::map<uid_t, Wary> wary_;
  std::map<uid_t, CpuShare> last_reads_;  ///< for what ended programs left, by user
  std::uint64_t taken_over_ = 0;
};

}  // namespace rtev
