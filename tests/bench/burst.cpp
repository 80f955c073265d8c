// SPDX-License-Identifier: MIT
// Losses in bursts after silence: a second without an event, then 20,000 as fast as they go.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "bench/benchmarks.hpp"
#include "bench/live_stream.hpp"
#include "bench/load.hpp"
#include "bench/ocaml_program.hpp"
#include "bench/recorded.hpp"
#include "bench/tool.hpp"

namespace rtev::bench {
namespace {

/// What a default ring holds: it is lost only if earlier events are still unread.
constexpr unsigned burst_events = 20'000;
/// Fills a default ring several times, so that it must be noticed while it goes on.
constexpr unsigned long_burst_events = 100'000;
/// There is no goal for them.
constexpr int max_long_bursts = 25;
constexpr std::chrono::seconds silence{1};

/// Processes that write a burst each, at the same time.
class Writers {
 public:
  virtual ~Writers() = default;
  /// All are ready to write.
  virtual void arm() {}
  /// Returns when all have written.
  virtual void burst() = 0;
};

/// The same OCaml programs in all bursts.
class OcamlWriters final : public Writers {
 public:
  OcamlWriters(unsigned processes, unsigned events) {
    for (unsigned i = 0; i < processes; ++i) {
      programs_.emplace_back(ocaml_program("bursts", directory_.path(), {std::to_string(events)}));
      programs_.back().lines_until("ready");
    }
  }
  void burst() override {
    for (test::Process& program : programs_) program.go();
    for (test::Process& program : programs_) program.lines_until("done");
  }

 private:
  test::TempDir directory_;
  std::deque<test::Process> programs_;
};

/// New processes for each burst, since rtev-load knows no pauses. Their rings exist during the silence before it.
class LoadWriters final : public Writers {
 public:
  explicit LoadWriters(unsigned processes) : processes_(processes) {}
  void arm() override {
    // A burst of this mix fits a ring: rtev-load is faster than any OCaml program, so one that does not may be lost.
    load_ = std::make_unique<Load>(std::vector<std::string>{"-P", std::to_string(processes_), "-r", "max", "-n",
                                                            std::to_string(burst_events), "-m", "gc=8,counters=2"});
  }
  void burst() override {
    load_->go();
    load_->wait();
  }

 private:
  unsigned processes_;
  std::unique_ptr<Load> load_;
};

/// Writes bursts; returns when each began.
std::vector<std::uint64_t> write_bursts(Writers& writers, int bursts) {
  std::vector<std::uint64_t> starts;
  for (int i = 0; i < bursts; ++i) {
    writers.arm();
    std::this_thread::sleep_for(silence);
    starts.push_back(monotonic_ns());
    writers.burst();
  }
  return starts;
}

struct Case {
  bool is_ocaml;
  unsigned processes;
  unsigned events;  ///< of each process
};

void add(Report& report, const Case& what, const char* tracer, const Recorded& recorded,
         const std::vector<std::uint64_t>& starts) {
  std::set<std::ptrdiff_t> with_loss;
  for (const std::uint64_t gap : recorded.gaps)
    with_loss.insert(std::ranges::upper_bound(starts, gap) - starts.begin());
  const std::uint64_t written = std::uint64_t{what.events} * what.processes * starts.size();
  // An event has at least two words.
  const bool is_wrong = recorded.events + recorded.lost_words / 2 < written;
  report.add({.section = "burst",
              .what = fmt::format("{}, {} process{}, {} events each", what.is_ocaml ? "OCaml" : "rtev-load",
                                  what.processes, what.processes == 1 ? "" : "es", what.events),
              .unit = "words lost",
              .subject = {.name = tracer, .runs = {static_cast<double>(recorded.lost_words)}},
              .goal = what.events == burst_events ? std::optional(Goal::at_most(0, "words")) : std::nullopt,
              .note = fmt::format("{}{} bursts, each after a second of silence, {} of them with a loss; {} events "
                                  "delivered of {} and those of the runtime",
                                  is_wrong ? "WRONG, more events are missing than were counted as lost: " : "",
                                  starts.size(), with_loss.size(), recorded.events, written)});
}

/// Two tracers follow the same bursts: `record`, and the live stream to a pipe.
void measure(Report& report, const Case& what, int bursts) {
  const std::vector<std::string> which{"-n", what.is_ocaml ? "bursts" : Load::name};
  std::unique_ptr<Writers> writers;
  if (what.is_ocaml)
    writers = std::make_unique<OcamlWriters>(what.processes, what.events);
  else
    writers = std::make_unique<LoadWriters>(what.processes);
  const test::TempDir directory;
  const std::string file = directory / "trace.fxt";
  Tool tool({"record", "-q", which[0], which[1], "-o", file});
  LiveStream stream(which);
  const std::vector<std::uint64_t> starts = write_bursts(*writers, bursts);
  tool.interrupt();
  add(report, what, "record", recorded_in(file), starts);
  add(report, what, "live to a pipe", stream.stop(), starts);
}

}  // namespace

void burst(Report& report, const Effort& effort) {
  for (const bool is_ocaml : {true, false}) {
    if (is_ocaml && !has_ocaml()) continue;
    for (const unsigned processes : {1u, 8u}) measure(report, {is_ocaml, processes, burst_events}, effort.bursts);
  }
  if (has_ocaml()) measure(report, {true, 1, long_burst_events}, std::min(effort.bursts, max_long_bursts));
}

}  // namespace rtev::bench
