// SPDX-License-Identifier: MIT
// Stopped programs and stopped tracers (SIGSTOP).
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

class StopLive : public LiveTest {};

TEST_F(StopLive, ProgramStoppedBeforeTheTracerStarts) {
  covers("lifecycle", "found while stopped (SIGSTOP)");
  Process continued(preserved("ends", {"wait"})), killed(preserved("ends", {"wait"}));
  for (Process* process : {&continued, &killed}) {
    process->lines_until("ready");
    process->stop();
  }
  Tracer tracer({"--sched", "off", "--history"});
  continued.resume();
  EXPECT_EQ(run_through(continued).status.code(), 0);
  killed.signal(SIGKILL);
  EXPECT_EQ(killed.wait().status.signal(), SIGKILL);
  const Trace trace = tracer.stop();
  for (const Process* process : {&continued, &killed}) {
    expect_exact(trace, dir.path(), process->pid());
    EXPECT_EQ(steps(trace, process->pid()), count_to(100));
  }
  EXPECT_THAT(trace.actions(continued.pid()), ElementsAre("found", "ring", "stop", "exit"));
  EXPECT_THAT(trace.actions(killed.pid()), ElementsAre("found", "ring", "exit"));
  EXPECT_EQ(trace.action(killed.pid(), "exit")["status"], Json({{"signal", SIGKILL}}));
}

TEST_F(StopLive, ProgramStoppedMidway) {
  covers("lifecycle", "stopped midway, then resumed or killed");
  Tracer tracer({"--sched", "off"});
  Process continued(preserved("killed")), killed(preserved("killed"));
  for (Process* process : {&continued, &killed}) {
    process->lines_until("ready");
    process->go_until("busy");
    process->stop();
  }
  killed.signal(SIGKILL);
  killed.wait();
  continued.resume();
  continued.signal(SIGTERM);
  continued.wait();
  const Trace trace = tracer.stop();
  for (const Process* process : {&continued, &killed}) expect_exact(trace, dir.path(), process->pid());
  EXPECT_EQ(trace.action(continued.pid(), "exit")["status"], Json({{"signal", SIGTERM}}));
  EXPECT_EQ(trace.action(killed.pid(), "exit")["status"], Json({{"signal", SIGKILL}}));
}

/// Positions of the steps' words in a ring that holds nothing else after `first`. As in the runtime, no event is split
/// at the end of the ring.
std::vector<std::uint64_t> places_of_steps(std::uint64_t first, std::size_t count, std::uint64_t ring_words) {
  constexpr std::uint64_t step_words = 3;  // header, time, value
  std::vector<std::uint64_t> places;
  for (std::uint64_t place = first; places.size() < count; place += step_words) {
    const std::uint64_t left = ring_words - place % ring_words;
    if (left < step_words) place += left;
    places.push_back(place);
  }
  return places;
}

/// Words lost while the tracer is stopped are known exactly, from the layout of the ring and the numbers of the
/// delivered steps.
TEST_F(StopLive, StoppedTracerLosesWhatTheRingCannotHold) {
  covers("lifecycle", "tracer stopped and resumed: losses exact");
  constexpr std::int64_t count = 5000;
  constexpr std::uint64_t ring_words = 4096;
  Command command = preserved("steps", {std::to_string(count), "3"});
  command.env["OCAMLRUNPARAM"] = "e=12";
  Tracer tracer({"--sched", "off"});
  Process process(command, "ready");
  // Else it may be among what the stopped tracer loses.
  tracer.process().line_with(R"("name":"ring_start")");
  for (int time = 0; time < 3; ++time) {
    tracer.process().stop();
    process.go_until(time < 2 ? "ready" : "done");
    tracer.process().resume();
    // The tracer cannot lag again before it has read this.
    tracer.process().line_with("\"value\":" + std::to_string((time + 1) * count) + "}");
  }
  EXPECT_EQ(run_through(process).status.code(), 0);
  const Trace trace = tracer.stop();

  auto words = trace.words(process.pid());
  EXPECT_EQ(words["corrupt"], 0u);
  EXPECT_EQ(words["unread"], 0u);
  const std::vector<Json> losses = trace.of(process.pid(), "lost");
  std::uint64_t expected = 0;
  EXPECT_EQ(words["lost"], trace.lost_words(process.pid()));

  const auto numbers = steps(trace, process.pid());
  ASSERT_FALSE(numbers.empty());
  EXPECT_TRUE(std::ranges::is_sorted(numbers)) << "none twice, and in order";
  EXPECT_EQ(std::ranges::adjacent_find(numbers), numbers.end());
  EXPECT_EQ(numbers.back(), 3 * count);
  // Before the first step, the ring holds its start event (two words) and that event's value (one word).
  const auto before = trace.from_rings(process.pid());
  ASSERT_EQ(before.front()["name"], "ring_start");
  const auto first_step = std::ranges::find(before, Json("user"), [](const Json& event) { return event["type"]; });
  const auto first_loss = std::ranges::find(before, Json("lost"), [](const Json& event) { return event["type"]; });
  std::uint64_t first = 0;
  for (auto event = before.begin(); event != std::min(first_step, first_loss); ++event)
    first += (*event)["type"] == "begin" || (*event)["type"] == "end" ? 2 : 3;
  const auto places = places_of_steps(first, 3 * count, ring_words);
  std::int64_t last = 0;
  for (const std::int64_t number : numbers) {
    if (number != last + 1) {
      const std::uint64_t lost_from = last == 0 ? first : places[static_cast<std::size_t>(last) - 1] + 3;
      expected += places[static_cast<std::size_t>(number) - 1] - lost_from;
    }
    last = number;
  }
  EXPECT_GT(expected, 0u);
  EXPECT_EQ(words["lost"], expected);
  EXPECT_EQ(losses.size(), 3u);
}

/// Whoever reads the output must not keep the tracer from ending.
TEST_F(StopLive, TracerWhoseReaderTakesNothingEnds) {
  const std::string fifo = dir / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const UniqueFd reader(::open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  const Strings by_stdout{"sh", "-c", R"(exec "$@" > "$0")", fifo, tool(), "-f", "jsonl", "-n", "nothing"};
  for (const Strings& argv : {by_stdout, Strings{tool(), "-f", "jsonl", "-n", "nothing", "-o", fifo}}) {
    std::optional<Process> tracer;
    start_ready(tracer, {.argv = argv});
    std::array<char, 4096> bytes{};
    while (::write(reader.get(), bytes.data(), bytes.size()) > 0) {
    }
    tracer->signal(SIGTERM);
    const Outcome outcome = tracer->wait(std::chrono::seconds(5));
    EXPECT_EQ(outcome.status.code(), 128 + SIGTERM) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("the reader of the output takes nothing"));
    while (::read(reader.get(), bytes.data(), bytes.size()) > 0) {
    }
  }
}

/// SIGINT to the process group, as the terminal sends it, at many moments of the start.
TEST_F(StopLive, InterruptedStartLeavesNothing) {
  constexpr std::chrono::milliseconds step{15}, last{150};
  for (const Strings& arguments : {Strings{"record", "-o", "trace.fxt"}, Strings{"report", "-o", "page.html"},
                                   Strings{"stats", "-o", "report.txt"}}) {
    for (std::chrono::milliseconds moment{0}; moment < last; moment += step) {
      const TempDir place;
      const fs::path rings = place / "rings", work = place / "work";
      fs::create_directory(rings);
      fs::create_directory(work);
      Command command{.argv = {tool()}, .env = {{"TMPDIR", rings}}, .directory = work};
      command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
      for (const char* const word : {"--", "sleep", "600"}) command.argv.emplace_back(word);
      Process tracer(command);
      // Not to wait for something: it is when the user is impatient.
      std::this_thread::sleep_for(moment);
      ASSERT_EQ(::kill(-tracer.pid(), SIGINT), 0);
      const Outcome outcome = tracer.wait();
      const std::string what = arguments.front() + " after " + std::to_string(moment.count()) + " ms: " + outcome.err;
      EXPECT_TRUE(outcome.status.code() == 128 + SIGINT || outcome.status.signal() == SIGINT) << what;
      EXPECT_THAT(outcome.err, Not(HasSubstr("cannot"))) << what;
      EXPECT_TRUE(fs::is_empty(rings)) << what;
      if (outcome.err.empty() || outcome.err.contains("interrupted before sleep was started"))
        EXPECT_TRUE(fs::is_empty(work)) << what;
      else
        EXPECT_GT(fs::file_size(work / arguments.back()), 0u) << what;
    }
  }
}

}  // namespace
}  // namespace rtev::test
