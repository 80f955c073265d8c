// SPDX-License-Identifier: MIT
// What `diff` keeps of a recording: sums and durations of each program, by slices of time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "analysis/diff/slice_clock.hpp"
#include "analysis/diff/sliced_distribution.hpp"
#include "stream/losses.hpp"
#include "stream/not_recorded.hpp"

namespace rtev {

/// What is summed up for each slice. Phases follow, by their ids of Family::since_5_3.
enum class SliceSum : std::uint8_t {
  running_ns,   ///< at least one process runs
  process_ns,   ///< of all processes together
  domain_ns,    ///< of all domains together
  lossy_ns,     ///< of domains: events are missing
  sched_lossy,  ///< not 0: scheduler events are missing
  cpu_ns,       ///< threads on a cpu
  runnable_ns,  ///< threads that wait for a cpu
  gc_ns,        ///< in pauses
  gc_cpu_ns,    ///< of it, on a cpu
  pauses,
  minor_collections,  ///< that domains took part in
  major_cycles,       ///< likewise
  minor_bytes,        ///< allocated in minor heaps
  promoted_bytes,     ///< of them
  major_bytes,        ///< allocated in the major heap, without what was promoted
  heap_byte_ns,       ///< size of the heap times time
  heap_ns,            ///< of processes whose heap is known
  cpu_samples,
  allocation_samples,
  explicit_calls,  ///< and the next ones, as explicit_phases()
};
inline constexpr std::size_t explicit_sums = 7, phase_sums = 64;
inline constexpr std::size_t first_phase_sum = static_cast<std::size_t>(SliceSum::explicit_calls) + explicit_sums;
inline constexpr std::size_t slice_sums = first_phase_sum + phase_sums;

/// Rows of sums, one for each slice.
class SlicedSums {
 public:
  using Row = std::array<double, slice_sums>;

  double& at(std::size_t slice, std::size_t sum) {
    if (rows_.size() <= slice) rows_.resize(slice + 1);
    return rows_[slice][sum];
  }
  double& at(std::size_t slice, SliceSum sum) { return at(slice, static_cast<std::size_t>(sum)); }
  /// Slices become twice as long.
  void halve() {
    for (std::size_t i = 0; i < rows_.size(); i += 2) {
      Row row = rows_[i];
      for (std::size_t sum = 0; i + 1 < rows_.size() && sum < row.size(); ++sum) row[sum] += rows_[i + 1][sum];
      rows_[i / 2] = row;
    }
    rows_.resize((rows_.size() + 1) / 2);
  }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
};

/// What is measured of a program besides user spans.
enum class Measured : std::uint8_t {
  pauses,
  minor_pauses,     ///< with a minor collection
  major_pauses,     ///< of the major collector, without a minor collection
  explicit_pauses,  ///< that the program asked for by a function of Gc
  stw_arrivals,     ///< from the request for a stop-the-world section to the moment that the last domain has come
  cpu_waits,        ///< of threads for a cpu
};
inline constexpr std::size_t measured_count = 6;

/// Samples of a function, by slice.
using SlicedSamples = std::vector<std::uint32_t>;

/// All processes of one program. Strings are whatever the program made them.
struct RecordedProgram {
  std::string name{};
  std::set<std::string> versions{};  ///< of OCaml, some
  std::uint64_t processes = 0;
  LostWords lost{};                       ///< of rings
  std::uint64_t fullest_minor_words = 0;  ///< the most that one collection found in the minor heap of a domain
  bool lacks_room = false;                ///< durations were left out
  SlicedSums sums{};
  std::array<SlicedDistribution, measured_count> measured{};
  std::map<std::string, SlicedDistribution> spans{};         ///< of the program itself, by name
  std::map<std::string, SlicedSamples> cpu{}, allocation{};  ///< by function, without control characters
  SlicedSamples gc{};                                        ///< on a CPU, in the GC
};

struct RecordedRun {
  std::string version{};  ///< of rtev-bpf
  std::string host{}, kernel{};
  std::uint64_t run_ns = 0, run_realtime_ns = 0;  ///< when tracing began; of CLOCK_REALTIME 0 is unknown
  std::uint64_t start_ns = 0, end_ns = 0;         ///< of what was read
  std::uint64_t slice_ns = 0;
  bool scheduler_seen = false;
  bool truncated = false;  ///< its end is missing
  NotRecorded not_recorded{};
  std::uint64_t scheduler_dropped = 0, samples_dropped = 0;
  std::uint64_t rings_missed = 0;
  std::uint64_t processes_left_out = 0;  ///< processes of programs that there was no room for
  std::vector<RecordedProgram> programs{};
  std::set<std::string> events_off{};  ///< names of some programs that were seen, and of which no process had a ring
};

}  // namespace rtev
