// SPDX-License-Identifier: MIT
// Parts of sentences and tables that several reports have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cpu_history.hpp"
#include "analysis/latency/histogram.hpp"
#include "base/text_format.hpp"
#include "rtev/names.hpp"
#include "stream/losses.hpp"
#include "stream/records.hpp"

namespace rtev {

/// "minor", or "#77" if the family has no such phase.
struct PhaseName {
  Family family;
  std::uint16_t phase;
};

/// "1", "1 #2" for the second incarnation of the number.
struct DomainName {
  std::uint32_t domain;
  std::uint32_t incarnation;
};

/// `"stress" (pid 99)`, with the tid if it is not the main thread; a thread of `own_pid` as such. Escaped.
struct ThreadName {
  const Thread& thread;
  std::int32_t own_pid;
};

/// `behind "stress" (pid 99)`: which thread had the cpu.
struct Behind {
  const CpuWait& wait;
  std::int32_t own_pid;
};

/// A moment as seconds since the run began: "1.234567890 s".
struct Moment {
  std::uint64_t time_ns;
  std::uint64_t start_ns;
};

/// The same after the time of day, if that is known: "14:03:22.123456 (1.234567890 s)". `start_realtime_ns` is
/// CLOCK_REALTIME when the run began, or 0.
struct WhenOf {
  std::uint64_t time_ns;
  std::uint64_t start_ns;
  std::uint64_t start_realtime_ns;
};

/// "server/4242", escaped.
struct ProcessName {
  std::string_view comm;
  std::int32_t pid;
};

/// The command that shows this part of a recording, and at least a millisecond before and after it: "rtev-bpf dump FILE
/// --from 0.058 --to 0.072".
struct DumpCommand {
  std::string_view input;  ///< as it is written in a shell
  std::uint64_t begin_ns, end_ns;
  std::uint64_t start_ns;  ///< when the run began
};

/// "93%", "<1%", "0%".
struct Percent {
  std::uint64_t part;
  std::uint64_t of;
  bool shows_rest = false;  ///< less than all is at most ">99%": where the rest is told beside it
};

void append(TextBuffer& out, const PhaseName& phase);
void append(TextBuffer& out, const DomainName& domain);
void append(TextBuffer& out, const ThreadName& name);
void append(TextBuffer& out, const Behind& behind);
void append(TextBuffer& out, const Moment& moment);
void append(TextBuffer& out, const WhenOf& when);
void append(TextBuffer& out, const ProcessName& process);
void append(TextBuffer& out, const DumpCommand& command);
void append(TextBuffer& out, const Percent& percent);

/// A sentence as a line, folded; of an empty one nothing.
void add_line(TextBuffer& out, std::string_view sentence);

/// Likewise lines, each with its end.
void add_lines(TextBuffer& out, std::string_view lines);

/// "3 gaps in the scheduler events of threads"; empty if there are none.
std::string scheduler_gaps_text(const std::vector<Lack>& lacks);

/// Which events are missing and which came late: a sentence, or nothing. Scheduler events and samples are left out:
/// what their loss means differs by report.
void add_lacks(TextBuffer& out, const std::vector<Lack>& lacks);

/// Of a report with scheduler events: how much of the time of its pauses or spans (`what`) is not known, and why as far
/// as that is known: by gaps among the lacks, or events that were dropped; and that sleeps cannot be told from the
/// waits for a CPU after them if wakeups were not recorded. Lines, or nothing.
void add_unknown_time(TextBuffer& out, std::uint64_t unknown_ns, std::uint64_t whole_ns, std::string_view what,
                      const NotRecorded& not_recorded, const std::vector<Lack>& lacks,
                      std::uint64_t scheduler_dropped = 0);

/// Before a figure that is a lower bound.
constexpr std::string_view at_least(bool is_bound) {
  return is_bound ? "at least " : "";
}

/// "half up to 1ms, 1 in 100 over 3ms, ": as far as there are so many durations.
std::string usual_text(const Histogram& durations);

inline Counted times(std::uint64_t count) {
  return {count, "time", "times"};
}

/// A share beside time that is unknown: a lower bound, unless that is less than a hundredth. "-" of what nothing is
/// known.
struct KnownShare {
  std::string text;
  bool is_bound;  ///< to be marked with a +
};
KnownShare known_share(std::uint64_t part_ns, std::uint64_t whole_ns, std::uint64_t unknown_ns);

/// Width of a column of durations.
inline constexpr std::size_t duration_width = 9;

}  // namespace rtev
