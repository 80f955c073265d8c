// SPDX-License-Identifier: MIT
// Events of programs without a ring, which uprobes report, become part of the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/timed_tasks.hpp"
#include "kernel/kernel_source.hpp"
#include "processes/discovery_context.hpp"
#include "processes/process_table.hpp"
#include "session/live/left_out_programs.hpp"
#include "session/live/ringless_probes.hpp"
#include "stream/timeline.hpp"

namespace rtev {

/// Each process gets a slot as if it had a ring. Its words are those that its events would take there, so that for it,
/// too, delivered and lost words make up what would have been written. One thread, except for prepare().
class Ringless {
 public:
  struct Context {
    Registry& registry;
    Timeline& timeline;
    ProcessEvents& events;
    const ProcessTable& processes;
    TimedTasks& tasks;
    RinglessProbes::RunLater run_later;
    std::uint64_t start_ns;  ///< of the session
    RinglessProbes::Care care{};
  };
  /// `source` and `programs` are those of --ringless, and must outlive the object.
  Ringless(kernel::RinglessSource& source, kernel::UprobePrograms& programs, Context context,
           const ProcessFilter& filter);
  ~Ringless();

  /// A binary was inspected. Called on the inspector's thread. False: to be called again.
  bool prepare(int fd, const RuntimeBinary& runtime, kernel::ProbedBinary binary) {
    return probes_.prepare(fd, runtime, std::move(binary));
  }
  /// A process of this binary is tracked that has no ring so far.
  void consider(std::uint32_t binary) { probes_.consider(binary); }

  /// Reads the records of the probes. True if there were any.
  bool read();
  /// Stages the records from before this time, as events of the processes that are known now.
  void place_until(std::uint64_t time_ns);
  struct Times {
    std::uint64_t now_ns;
    std::uint64_t records_taken_until_ns;  ///< all lifecycle records from before have been taken
  };
  /// Stages the records from before `records_taken_until_ns`.
  void tick(const Times& times);

  /// A ring of the process was opened.
  void on_ring(ProcessIndex process, std::uint64_t time_ns);
  struct End {
    std::uint64_t time_ns;
    bool by_exec;
  };
  /// An image ended that is still in the table: adds its slot to `slots`, and its figures to its info.
  void end_image(ProcessIndex process, const End& end, std::vector<std::uint32_t>& slots);
  /// The session ends: adds the figures of images that still run.
  void finish(std::uint64_t now_ns);

  /// Detaches probes that have not been needed for long.
  void detach_unused(std::uint64_t now_ns) { probes_.detach_unused(now_ns); }

  /// Events since then wait for their process to come into view.
  std::optional<std::uint64_t> waiting_since() const;

  struct Figures {
    std::uint64_t gaps = 0;      ///< times that programs were not traced for a while because they were too fast
    std::uint64_t dropped = 0;   ///< events that found no room in the kernel's buffer
    std::uint64_t unplaced = 0;  ///< events whose domain or process is unknown
  };
  Figures figures() const;
  /// Of processes that have ended.
  const LeftOutPrograms& unprobed() const { return unprobed_; }

 private:
  /// One with events.
  struct Domain {
    std::uint64_t last_ns;           ///< until when no event was missed
    bool has_ended = false;          ///< since the last event
    bool missed_some_since = false;  ///< events of another one with its number, if there was one
  };
  /// A process with a slot.
  struct Probed {
    std::uint32_t slot = 0;
    std::uint32_t binary = 0;
    std::uint32_t user = 0;
    std::uint64_t since_ns = 0;   ///< it is accounted for from then on
    bool missed_some = false;     ///< events between since_ns and the first record
    std::uint64_t paused_ns = 0;  ///< since when it pauses because it was too fast; 0: it does not
    Accounting words{};
    std::map<std::uint16_t, Domain> domains{};
  };
  bool place(const rtev_probed& record);
  bool misses_some(const Probed& probed) const;
  Probed* find_or_add(ProcessIndex process, std::uint64_t time_ns, const Probed& first);
  void lose(Probed& probed, std::uint16_t domain, std::uint64_t time_ns, LossReason reason, std::uint64_t words);
  void lose_unprobed(Probed& probed, std::uint64_t time_ns);
  void end_unprobed(const ProcessTable::Ringless& process, const End& end, std::vector<std::uint32_t>& slots);
  void take_attached();
  bool is_wanted(std::int32_t pid) const;
  bool has_past(const ProcessTable::Ringless& process) const;
  std::uint32_t add_slot(ProcessIndex process);

  kernel::RinglessSource& source_;
  RinglessProbes probes_;
  Context context_;
  std::vector<std::int32_t> pids_;
  bool is_filtered_;
  std::vector<rtev_probed> records_;  ///< in order of time
  std::size_t placed_ = 0;            ///< of those
  std::vector<rtev_probed> waiting_;  ///< for their process to come into view
  TimedTask placing_;                 ///< until those have waited for too long; tick() does the work
  std::map<ProcessIndex, Probed> probed_;
  Figures figures_;
  LeftOutPrograms unprobed_{unprobed_wording};
};

}  // namespace rtev
