// SPDX-License-Identifier: MIT
// Time until an event is shown, and until the tracer has exited.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "bench/benchmarks.hpp"
#include "bench/ocaml_program.hpp"
#include "bench/tool.hpp"
#include "rtev/ring_writer.hpp"
#include "support/temp_dir.hpp"

namespace rtev::bench {
namespace {

using Json = nlohmann::json;

double ms_between(std::uint64_t from_ns, std::uint64_t to_ns) {
  return (static_cast<double>(to_ns) - static_cast<double>(from_ns)) / 1e6;
}

enum class Where : bool { pipe, terminal };

/// The tracer's JSON lines, each with its time of arrival.
class WatchedTool {
 public:
  explicit WatchedTool(Where where) : tool_({"-f", "jsonl"}, std::nullopt, where == Where::terminal) {}

  struct Line {
    Json event;
    std::uint64_t arrived_ns;
  };
  /// The next line that contains `text`.
  Line next(std::string_view text) {
    const std::string line = tool_.process().line_with(text);
    const std::uint64_t now = monotonic_ns();
    return {Json::parse(line), now};
  }

 private:
  Tool tool_;
};

/// Times of one run of a program that does almost nothing.
struct RunTimes {
  std::uint64_t exec_ns = 0, first_event_ns = 0, first_arrived_ns = 0, last_arrived_ns = 0, exit_ns = 0,
                exit_arrived_ns = 0;
};

RunTimes watch_hello(WatchedTool& stream, const std::filesystem::path& directory) {
  test::Process program(ocaml_program("hello", directory));
  const std::string of_it = fmt::format("\"pid\":{},", program.pid());
  RunTimes times;
  while (times.exit_ns == 0) {
    const auto [event, arrived_ns] = stream.next(of_it);
    const std::string type = event.value("type", "");
    const std::uint64_t time = event.value("ts", std::uint64_t{0});
    if (type == "process") {
      const std::string action = event.value("action", "");
      if (action == "exec" || action == "found") times.exec_ns = time;
      if (action == "exit") {
        times.exit_ns = time;
        times.exit_arrived_ns = arrived_ns;
      }
    } else if (type == "begin" || type == "end" || type == "counter" || type == "lifecycle") {
      if (times.first_event_ns == 0) {
        times.first_event_ns = time;
        times.first_arrived_ns = arrived_ns;
      }
      times.last_arrived_ns = arrived_ns;
    }
  }
  if (times.exec_ns == 0 || times.first_event_ns == 0) throw std::runtime_error("events of a program did not arrive");
  program.wait();
  return times;
}

/// `most_ms`: how fresh events are to be there.
void program_runs(Report& report, Where where, double most_ms, const Effort& effort) {
  const int samples = effort.rounds < 7 ? 10 : 50;
  const test::TempDir directory;
  WatchedTool stream(where);
  const std::string to = where == Where::terminal ? " to a terminal" : " to a pipe";
  Series first{.name = "rtev-bpf", .runs = {}}, own{.name = "the program", .runs = {}}, delivery = first, last = first,
                                                                                        exit = first;
  watch_hello(stream, directory.path());  // the first inspection of the binary
  for (int i = 0; i < samples; ++i) {
    const RunTimes times = watch_hello(stream, directory.path());
    first.runs.push_back(ms_between(times.exec_ns, times.first_arrived_ns));
    own.runs.push_back(ms_between(times.exec_ns, times.first_event_ns));
    delivery.runs.push_back(ms_between(times.first_event_ns, times.first_arrived_ns));
    last.runs.push_back(ms_between(times.exit_ns, times.last_arrived_ns));
    exit.runs.push_back(ms_between(times.exit_ns, times.exit_arrived_ns));
  }
  const auto add = [&](const std::string& what, const Series& series, std::optional<Goal> goal, const char* note) {
    report.add({.section = "latency",
                .what = what + to,
                .unit = "ms",
                .subject = series,
                .goal = std::move(goal),
                .note = note});
  };
  add("exec to first event delivered", first, std::nullopt,
      "an OCaml hello world, JSON lines; the two rows below are what it is made of");
  add("  exec to first event written", own, std::nullopt, "by the program: its start, and the making of its ring");
  add("  first event written to delivered", delivery, Goal::at_most(most_ms, "ms"),
      "finding the ring, reading, and holding back until no older event can come");
  add("exit to last event delivered", last, Goal::at_most(50, "ms"), "the same runs; the last event of the ring");
  add("exit to exit delivered", exit, Goal::at_most(50, "ms"), "the line that says so");
}

/// Single events of a process that otherwise sleeps.
void rare_events(Report& report, Where where, double most_ms, const Effort& effort) {
  const int samples = effort.rounds < 7 ? 10 : 50;
  const test::TempDir directory;
  WatchedTool stream(where);
  auto writer = RingWriter::create({.directory = directory.path().string()});
  if (!writer) throw std::runtime_error(writer.error().message());
  const auto event = writer->register_event("bench.rare", UserType::unit);
  if (!event) throw std::runtime_error(event.error().message());
  Series series{.name = "rtev-bpf", .runs = {}};
  for (int i = 0; i < samples; ++i) {
    // Not a multiple of any of the tracer's intervals.
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 7 * (i % 5)));
    writer->domain(0).write(*event);
    const auto [line, arrived_ns] = stream.next("bench.rare");
    series.runs.push_back(ms_between(line.value("ts", std::uint64_t{0}), arrived_ns));
  }
  report.add(
      {.section = "latency",
       .what = fmt::format("rare event written to delivered to a {}", where == Where::terminal ? "terminal" : "pipe"),
       .unit = "ms",
       .subject = series,
       .goal = Goal::at_most(most_ms, "ms"),
       .note = "a user event every few hundredths of a second, of a process that sleeps in between"});
}

/// Ctrl-C with this many binaries attached.
void leaving(Report& report, const Effort& effort) {
  constexpr int many = 50;
  const test::TempDir directory;
  std::deque<test::Process> programs;
  for (int i = 0; i < many; ++i) {
    const auto copy = directory / fmt::format("program{}", i);
    test::Command command = ocaml_program("busy_alloc", directory.path());
    std::filesystem::copy_file(command.argv[0], copy);
    command.argv[0] = copy.string();
    programs.emplace_back(command);
    programs.back().lines_until("ready");
  }
  Series attach{.name = "rtev-bpf", .runs = {}}, leave = attach;
  for (int round = 0; round < std::max(3, effort.rounds); ++round) {
    const std::uint64_t launched = monotonic_ns();
    Tool tool({"-o", "/dev/null"});
    const std::uint64_t ready = monotonic_ns();
    tool.interrupt();
    leave.runs.push_back(ms_between(ready, monotonic_ns()));
    attach.runs.push_back(ms_between(launched, ready));
  }
  report.add({.section = "latency",
              .what = fmt::format("Ctrl-C to exit, {} binaries attached", many),
              .unit = "ms",
              .subject = leave,
              .goal = Goal::at_most(1000, "ms"),
              .note = "running programs with rings, copies of one; until the tracer's process has ended"});
  report.add({.section = "latency",
              .what = fmt::format("start to ready, {} binaries to attach", many),
              .unit = "ms",
              .subject = attach,
              .note = "the same runs"});
}

}  // namespace

void latency(Report& report, const Effort& effort) {
  constexpr double terminal_ms = 25, pipe_ms = 50;
  for (const auto& [where, most_ms] : {std::pair{Where::terminal, terminal_ms}, std::pair{Where::pipe, pipe_ms}}) {
    if (has_ocaml()) program_runs(report, where, most_ms, effort);
    rare_events(report, where, most_ms, effort);
  }
  if (has_ocaml()) leaving(report, effort);
}

}  // namespace rtev::bench
