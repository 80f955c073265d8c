// SPDX-License-Identifier: MIT
// Interfaces of output formats (Sink) and of what they write to (Output).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rtev/error.hpp"
#include "rtev/event.hpp"
#include "stream/not_recorded.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// Metadata of a run that is known before its first event.
struct RunHeader {
  std::string version{};  ///< of rtev-bpf
  std::string host{};
  std::string kernel{};
  std::string machine{};  ///< hardware of the host as in uname(2), e.g. "x86_64"
  std::vector<std::string> command_line{};
  std::uint64_t start_ns = 0;           ///< CLOCK_MONOTONIC when tracing began
  std::uint64_t start_realtime_ns = 0;  ///< CLOCK_REALTIME of the same moment; 0: unknown
  std::uint64_t shown_from_ns = 0;      ///< of a part of a recording that begins after start_ns; 0: none
  NotRecorded not_recorded{};

  /// True if rings were read from their beginnings: then there are events from before the run.
  bool reads_past() const {
    const auto end = std::ranges::find(command_line, "--");  // what follows is of the program that was started
    return std::find(command_line.begin(), end, "--history") != end;
  }
  /// Where what is shown begins.
  std::uint64_t begin_ns() const { return shown_from_ns != 0 ? shown_from_ns : start_ns; }
};

/// Figures of a run that are known after its last event. Figures of processes are in the Registry.
struct RunSummary {
  std::uint64_t start_ns = 0;  ///< as in RunHeader
  std::uint64_t end_ns = 0;
  std::array<std::uint64_t, event_kind_count> events{};  ///< by EventKind
  std::uint64_t late = 0;                                ///< events flagged late
  std::uint64_t forced = 0;  ///< number of times that the limit of staging memory delivered events early
  struct Drop {
    std::string kind{};  ///< "switch", "wakeup", "exec", ...
    std::uint64_t count = 0;
  };
  /// A kind that counts how often probes were removed to limit their overhead for a program.
  static constexpr std::string_view limited{"limited"};
  /// A kind that counts processes without a ring whose programs cannot be probed.
  static constexpr std::string_view unprobed{"unprobed"};
  /// A kind that counts stack samples, and those that count the ones of sleeps and of allocations among them.
  static constexpr std::string_view sample{"sample"}, sample_off_cpu{"sample_off_cpu"},
      sample_allocation{"sample_allocation"};
  /// A kind that counts processes that the kernel refused to sample, or some threads of which it did.
  static constexpr std::string_view unsampled{"unsampled"};
  /// A kind that counts switches and wakeups, in a recording without its end.
  static constexpr std::string_view scheduler{"scheduler"};
  /// A kind that counts switches and wakeups of threads that cannot follow the ones before: others are missing that
  /// nobody counted. Only who follows threads knows them: Sink::scheduler_gaps().
  static constexpr std::string_view scheduler_gaps{"scheduler_gaps"};
  /// A kind that counts events that were read and not written, because the end may not take longer.
  static constexpr std::string_view unwritten{"unwritten"};
  /// Kinds that count rings that are not read, by Unreadable. They are in rings_missed, too.
  static constexpr std::string_view ring_file_system{"ring_file_system"}, ring_no_answer{"ring_no_answer"},
      ring_memory{"ring_memory"}, ring_other_user{"ring_other_user"}, ring_too_large{"ring_too_large"};
  std::vector<Drop> drops{};  ///< all kinds, also with count 0
  /// A process whose announcements of rings and pauses were dropped. It may be in no registry.
  struct Announcer {
    std::int32_t pid = 0;
    std::string comm{};
    std::uint64_t dropped = 0;
  };
  std::vector<Announcer> announcers{};
  std::uint64_t rings_missed = 0;  ///< rings that processes created and that were not read to their end
  std::uint64_t own_cpu_ns = 0;
  std::uint64_t own_max_rss_bytes = 0;
  bool complete = true;  ///< false: a recording without its end; only figures of its events are known
  /// It is the whole content of a ring file, not a trace, whose figures begin when a process was found.
  bool whole_ring = false;
};

/// A count that is unknown if it is 0 and not all was seen: of what is missing, in a recording without its end, which
/// has the totals.
constexpr std::optional<std::uint64_t> known_count(std::uint64_t count, bool is_partial) {
  return is_partial && count == 0 ? std::nullopt : std::optional{count};
}
constexpr std::optional<bool> known_flag(bool is_set, bool is_partial) {
  return is_partial && !is_set ? std::nullopt : std::optional{is_set};
}

/// Destination of text or bytes. write() can block: slow readers slow the tracer down instead of filling its memory.
class Output {
 public:
  virtual ~Output() = default;
  /// False after an error, e.g. a closed pipe or a full disk: see error().
  virtual bool write(std::string_view bytes) = 0;
  /// Writes pieces, which end at the offsets `ends`. After an error the output ends with a whole piece.
  virtual bool write_pieces(std::string_view bytes, std::span<const std::size_t> ends) {
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      if (!write(bytes.substr(begin, end - begin))) return false;
      begin = end;
    }
    return true;
  }
  /// Makes the output valid up to here even if the tracer is killed later.
  virtual bool sync() { return !error(); }
  /// Completes the output. Nothing is written after this.
  virtual bool finish() { return !error(); }
  virtual const std::optional<Error>& error() const = 0;
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void header(const RunHeader& header) = 0;
  /// Events in order of time, except for those flagged late. Payloads are valid during the call.
  virtual void consume(const Batch& batch, const Registry& registry) = 0;
  /// All events before `time_ns` were consumed, except for late ones. Called during tracing, also without events, for
  /// sinks that wait for a time.
  virtual void advance(std::uint64_t /*time_ns*/, const Registry& /*registry*/) {}
  /// Writes everything to the Output. Called at least once a second, and when the stream pauses.
  virtual void flush() = 0;
  /// True if the sink wants checkpoint() to be called soon.
  virtual bool wants_checkpoint() const { return false; }
  /// The figures of a live run so far, when all events are consumed up to the time of the last advance(). A sink may
  /// begin a new file here.
  virtual void checkpoint(const RunSummary& /*so_far*/, const Registry& /*registry*/) {}
  virtual void summary(const RunSummary& summary, const Registry& registry) = 0;
  /// See RunSummary::scheduler_gaps.
  virtual std::uint64_t scheduler_gaps() const { return 0; }
};

/// Forwards everything to another sink, which must outlive it. Base of sinks that change a stream.
class ForwardingSink : public Sink {
 public:
  explicit ForwardingSink(Sink& sink) : sink_(sink) {}

  void header(const RunHeader& header) override { sink_.header(header); }
  void consume(const Batch& batch, const Registry& registry) override { sink_.consume(batch, registry); }
  void advance(std::uint64_t time_ns, const Registry& registry) override { sink_.advance(time_ns, registry); }
  void flush() override { sink_.flush(); }
  bool wants_checkpoint() const override { return sink_.wants_checkpoint(); }
  void checkpoint(const RunSummary& so_far, const Registry& registry) override { sink_.checkpoint(so_far, registry); }
  void summary(const RunSummary& summary, const Registry& registry) override { sink_.summary(summary, registry); }

 protected:
  Sink& sink_;
};

}  // namespace rtev
