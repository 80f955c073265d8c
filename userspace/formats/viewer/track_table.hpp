// SPDX-License-Identifier: MIT
// The tracks of a trace: of threads by pid and tid, and of rings whose thread is unknown.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/recent_entries.hpp"
#include "formats/viewer/trace_writer.hpp"

namespace rtev {

/// Creates tracks when they are first needed, and names them to a TraceWriter. References are valid until the track is
/// forgotten. Memory is bounded: if there are too many threads of other programs, all of them are forgotten.
class TrackTable {
 public:
  /// `forgetting` is called before a track is removed.
  TrackTable(TraceWriter& writer, std::function<void(const Track&)> forgetting)
      : writer_(writer), forgetting_(std::move(forgetting)) {}

  /// A thread as the scheduler describes it. Null for the idle thread.
  const Track* thread(const Thread& thread);
  /// A thread of an OCaml process that writes the ring of a domain, in one incarnation.
  const Track& writer(ProcessIndex process, std::int32_t pid, std::int32_t tid, std::uint16_t domain,
                      std::uint32_t incarnation);
  /// Null if there is none, as for idle threads.
  const Track* find(std::int32_t pid, std::int32_t tid);
  /// The process's main thread.
  const Track& main_thread(ProcessIndex process, std::int32_t pid);
  /// A track for the ring itself, for one incarnation of its domain.
  const Track& ring(ProcessIndex process, std::int32_t pid, std::uint16_t domain, std::uint32_t incarnation);

  /// For a track that is not in this table.
  std::uint32_t next_id() { return next_id_++; }

  /// Sets the name of a process.
  void name_process(std::int32_t pid, std::string_view name);
  /// Forgets the threads of other programs if there are too many. Results of thread() may be invalid afterwards.
  void make_room();
  /// A thread that ended. The reference is invalid afterwards.
  void forget(const Track& track);
  /// The same for a track that nothing refers to any more: `forgetting` is not called.
  void remove(const Track& track);
  /// A process that ended, with the tracks of its threads and rings.
  void forget_process(std::int32_t pid);
  /// A domain ended: the next thread with this domain id belongs to another incarnation.
  void forget_domain(std::int32_t pid, std::int32_t domain);

 private:
  struct Process {
    std::string name{};
    bool is_named = false;  ///< by name_process(), not after one of its threads
    std::unordered_map<std::int32_t, std::int32_t> domain_threads{};  ///< tid of the main thread of each domain
  };
  using Key = std::uint64_t;  ///< ordered by pid

  Track& find_or_add(std::int32_t pid, std::int32_t tid, bool& is_new);
  void adopt(Track& track, ProcessIndex process);
  void describe(Track& track, std::string_view own_name, bool is_new);
  std::string name_of(const Track& track, std::string_view own_name);
  void name_after_thread(const Thread& thread);

  static constexpr Key key_of(std::int32_t pid, std::int32_t tid) {
    return Key{static_cast<std::uint32_t>(pid)} << 32 | static_cast<std::uint32_t>(tid);
  }

  TraceWriter& writer_;
  std::function<void(const Track&)> forgetting_;
  std::map<Key, Track> tracks_;
  RecentEntries<Track> recent_;
  std::unordered_map<std::int32_t, Process> processes_;
  std::size_t strangers_ = 0;  ///< tracks not known to belong to an OCaml program
  std::uint32_t next_id_ = 1;
  std::int32_t next_ring_tid_ = first_ring_tid;
};

}  // namespace rtev
