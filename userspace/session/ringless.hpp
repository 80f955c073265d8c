// SPDX-License-Identifier: MIT
// Events of programs that have no ring, seen by probes, become part of the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "kernel/ringless_programs.hpp"
#include "kernel/uprobe_manager.hpp"
#include "processes/discovery.hpp"
#include "session/unprobed_programs.hpp"
#include "stream/timeline.hpp"

namespace rtev {

/// Each program gets a slot as if it had a ring. Its words are those that its events would take in one, so that for it,
/// too, what is delivered and what is lost make up what would have been written. One thread, but for prepare().
class Ringless {
 public:
  /// What it needs to be told and to tell.
  struct Stream {
    Registry& registry;
    Timeline& timeline;
    DiscoveryListener& listener;
    std::uint64_t start_ns;
  };
  Ringless(kernel::RinglessPrograms programs, const Stream& stream, const DiscoveryOptions& wanted);
  ~Ringless();

  int fd() const { return programs_.fd(); }

  /// A binary was looked into. On the inspector's thread.
  void prepare(int fd, const Binary& binary);
  /// Discovery has found, or found out more of, a process of this binary that has no ring so far.
  void want(std::uint32_t binary_id) { candidates_.insert(binary_id); }

  /// Takes what the probes have seen.
  void drain();
  /// Puts that into the stream, up to a time, as events of the processes that discovery knows now.
  void place_until(std::uint64_t time_ns, const Discovery& discovery);
  /// Of a tick.
  struct Times {
    std::uint64_t now_ns;
    std::uint64_t taken_until_ns;  ///< discovery has been told all that happened before
  };
  /// The same up to the latter, and looks after the probes.
  void tick(const Times& times, const Discovery& discovery, Inspector& inspector);

  /// A process has got a ring.
  void on_ring(ProcessIndex process, std::uint64_t time_ns);
  /// Of an image.
  struct End {
    std::uint64_t time_ns;
    bool by_exec;
  };
  /// An image ended that discovery still knows: adds its slot to those it had, and its figures to its facts.
  void end_image(ProcessIndex process, const End& end, const Discovery& discovery, std::vector<std::uint32_t>& slots);
  /// The session ends: the figures of those that go on.
  void finish(std::uint64_t now_ns, const Discovery& discovery);

  /// Takes probes off that nobody has needed for long.
  void detach_unused(std::uint64_t now_ns, const Discovery& discovery, Inspector& inspector);

  void arm_wakeup() { programs_.arm_wakeup(); }
  /// True if the last drain() brought anything.
  bool is_active() const { return active_; }
  /// Events since then wait for their process to come into view.
  std::optional<std::uint64_t> waiting_since() const;
  /// When tick() has something to do again, as far as only time tells.
  std::optional<std::uint64_t> next_look_ns() const;

  struct Figures {
    std::uint64_t gaps = 0;      ///< times that the probes of a binary were taken off to spare its programs
    std::uint64_t dropped = 0;   ///< events that the kernel side had no room for
    std::uint64_t unplaced = 0;  ///< events whose domain or process could not be told
  };
  Figures figures() const;
  /// Known of those that have ended.
  const UnprobedPrograms& unprobed() const { return unprobed_; }

 private:
  /// A process with a slot.
  struct Probed {
    std::uint32_t slot = 0;
    std::uint32_t binary = 0;
    std::uint64_t since_ns = 0;
    bool missed_some = false;  ///< when it was first seen, since then
    Accounting words{};
    std::map<std::uint16_t, std::uint64_t> last_ns{};  ///< up to when all is known of each domain that made events
  };
  /// How it came to that.
  struct FirstSeen {
    std::uint32_t binary;
    std::uint64_t time_ns;
    std::uint64_t since_ns;  ///< from when on it is accounted for
    bool missed_some;        ///< since then
  };
  /// The probes of a binary were taken off.
  struct Gap {
    std::uint64_t put_back_ns;
    bool asked = false;  ///< for them to be put back
    bool again = false;  ///< too many events came before it was known that they are back
  };
  /// How long they stay off.
  struct Backoff {
    std::uint64_t pause_ns = 0;
    std::uint64_t on_since_ns = 0;  ///< the greatest there is: they are off
  };

  bool place(const rtev_probed& record, const Discovery& discovery);
  bool sees_all(std::uint32_t binary, std::uint64_t time_ns) const;
  bool misses_some(const Probed& probed) const;
  Probed* find_or_add(ProcessIndex process, const FirstSeen& first);
  void lose(Probed& probed, std::uint16_t domain, std::uint64_t time_ns, LossReason reason, std::uint64_t words);
  void lose_unprobed(Probed& probed, std::uint64_t time_ns);
  void end_unprobed(const Discovery::Ringless& process, const End& end, std::vector<std::uint32_t>& slots);
  void consider(std::uint64_t now_ns, const Discovery& discovery, Inspector& inspector);
  void spare(std::uint32_t binary_id, std::uint64_t now_ns, Inspector& inspector);
  void take_changes(const Discovery& discovery);
  bool is_wanted(std::int32_t pid) const;
  bool has_past(const Discovery::Ringless& process) const;
  std::uint32_t add_slot(ProcessIndex process);

  kernel::RinglessPrograms programs_;
  kernel::UprobeManager probes_;
  Stream stream_;
  std::vector<std::int32_t> pids_;
  bool is_filtered_;
  std::vector<rtev_probed> drained_;  ///< in order of time
  std::size_t placed_ = 0;            ///< of those
  std::vector<rtev_probed> waiting_;  ///< for their process to come into view
  std::uint64_t taken_until_ns_ = 0;  ///< see tick()
  std::map<ProcessIndex, Probed> probed_;
  std::set<std::uint32_t> candidates_;      ///< binaries that may have to be probed
  std::set<std::uint32_t> ended_unprobed_;  ///< binaries whose programs had no ring and were over too soon
  std::uint64_t considered_ns_ = 0;         ///< when they were last thought of
  std::set<std::uint32_t> too_fast_;        ///< binaries whose programs exceeded the limit, to be dealt with
  std::map<std::uint32_t, Gap> gaps_;
  std::map<std::uint32_t, Backoff> backoffs_;
  Figures figures_;
  UnprobedPrograms unprobed_;
  bool active_ = false;
};

}  // namespace rtev
