// SPDX-License-Identifier: MIT
// The flight recorder: keeps the last seconds of a stream in memory, and writes them to a file when a condition is met.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flight/condition.hpp"
#include "flight/dump_writer.hpp"
#include "flight/stream_history.hpp"
#include "flight/trigger_finder.hpp"
#include "flight/trigger_limits.hpp"
#include "stream/sink.hpp"

namespace rtev::flight {

struct RecorderOptions {
  StreamHistory::Options history{};
  std::vector<Condition> conditions{};
  TriggerLimits::Options limits{};
  std::uint64_t after_ns = 2'000'000'000;  ///< how long a dump goes on after its condition was met
};

/// Counts of a run. What is suppressed was met while no dump was made for it.
struct RecorderFigures {
  std::uint64_t written = 0, failed = 0;
  std::uint64_t joined = 0;                                  ///< conditions that were met while a dump was made
  std::uint64_t cut_short = 0;                               ///< dumps that ended early, because the disk is too slow
  std::uint64_t removed = 0;                                 ///< older dumps, for --max-disk
  std::array<std::uint64_t, suppressed_count> suppressed{};  ///< by Suppressed
  std::size_t kept_bytes = 0;
};

/// A dump is a recording that is complete in itself: what began before its time, the events of its time, and a summary
/// of that time. The stream goes on while it is written. Conditions that are met meanwhile extend it. Memory is
/// bounded: what is kept, and as much again that waits to be written. One thread, but for request_dump().
class FlightRecorder final : public Sink {
 public:
  /// `done` is called for each dump by a thread of its own.
  FlightRecorder(RecorderOptions options, DumpDirectory directory, DumpWriter::Done done);
  ~FlightRecorder() override;

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void advance(std::uint64_t time_ns, const Registry& registry) override;
  void flush() override {}
  bool wants_checkpoint() const override;
  void checkpoint(const RunSummary& so_far, const Registry& registry) override;
  /// Completes the dump in hand, and waits for it.
  void summary(const RunSummary& summary, const Registry& registry) override;

  /// Conditions that are met from the start on make no dump: another recorder makes it. To be called first.
  void hold() { is_held_ = true; }
  /// All that is met until this time was noted, whoever made a dump of it. From now on this one makes them.
  void take_over_at(std::uint64_t time_ns, const Registry& registry);

  /// Asks for a dump of what is kept now, whatever the limits; joins the one in hand. Any thread. The stream looks for
  /// it once a second at least; the result is an error if the run ends before. `trigger`: part of the file's name.
  std::future<DumpResult> request_dump(const std::string& trigger);
  /// The same for a signal handler.
  void request_dump_by_signal() { signalled_ = true; }

  RecorderFigures figures() const;
  const std::string& directory() const { return writer_->path(); }

 private:
  /// The dump in hand.
  struct Current {
    std::uint64_t number = 0;
    std::uint64_t next = 0;    ///< number of the first chunk that it does not have yet
    std::uint64_t end_ns = 0;  ///< it has all until then
    PeriodFigures::Base base{};
    std::map<std::uint64_t, Chunk> states{};  ///< what comes before chunks, by their numbers
  };
  using Waiting = std::promise<DumpResult>;

  void count(Suppressed reason);
  void on_firing(const Firing& firing, const Registry& registry);
  void take_requests();
  void begin_dump(DumpCause cause, std::uint64_t end_ns);
  void extend(std::uint64_t end_ns);
  void hand_over_closed();
  void end_dump(const RunSummary& so_far, const Registry& registry, bool is_last);
  void on_done(const DumpResult& result);

  RecorderOptions options_;
  StreamHistory history_;
  std::optional<TriggerFinder> finder_;
  TriggerLimits limits_;
  RunHeader header_;
  std::optional<Current> current_;
  bool is_held_ = false;
  std::uint64_t joined_ = 0, cut_short_ = 0;
  std::array<std::uint64_t, suppressed_count> suppressed_{};
  std::atomic<std::uint64_t> written_ = 0, failed_ = 0, removed_ = 0;

  DumpWriter::Done done_;
  std::atomic<bool> signalled_ = false;
  std::mutex mutex_;
  std::vector<std::pair<std::string, Waiting>> requests_;  ///< each with its trigger
  std::multimap<std::uint64_t, Waiting> waiting_;          ///< by number of the dump
  bool ended_ = false;
  std::unique_ptr<DumpWriter> writer_;  ///< last: its thread uses the others
};

}  // namespace rtev::flight
