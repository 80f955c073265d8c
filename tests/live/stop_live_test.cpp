// SPDX-License-Identifier: MIT
// Stopped programs and stopped tracers (SIGSTOP).
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <list>
#include <memory>
#include <random>
#include <thread>
#include <vector>

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

bool catches(pid_t pid, int signal_number) {
  const std::string status = read_file("/proc/" + std::to_string(pid) + "/status");
  const std::size_t at = status.find("SigCgt:");
  return at != std::string::npos &&
         (std::stoull(status.substr(at + sizeof "SigCgt:"), nullptr, 16) >> (signal_number - 1) & 1) != 0;
}

/// A command that is interrupted while it starts.
struct Interrupted {
  Strings arguments;
  std::string file{};  ///< that it writes; empty: none
};

/// All that trace; those before `--` start a program.
const std::vector<Interrupted>& interrupted_commands() {
  static const std::vector<Interrupted> commands = [] {
    std::vector<Interrupted> all{{{"-o", "stream.txt"}, "stream.txt"},
                                 {{"record", "-o", "trace.fxt"}, "trace.fxt"},
                                 {{"record", "--stacks", "-o", "trace.fxt"}, "trace.fxt"},
                                 {{"record", "--enable", "-o", "trace.fxt"}, "trace.fxt"},
                                 {{"report", "-o", "page.html"}, "page.html"},
                                 {{"profile", "-o", "profile.html"}, "profile.html"}};
    for (const char* const report : {"summary", "stats", "pauses", "latency", "stalls", "tasks", "allocs"})
      all.push_back({{report, "-o", "report.txt"}, "report.txt"});
    for (Interrupted& command : all)
      for (const char* const word : {"--", "sleep", "600"}) command.arguments.emplace_back(word);
    all.push_back({{"top", "-b"}});
    all.push_back({{"agent", "--listen", "127.0.0.1:0"}});
    return all;
  }();
  return commands;
}

/// One that was started, and is sent SIGINT at a moment.
struct Interruption {
  const Interrupted& command;
  std::chrono::milliseconds moment;
  std::unique_ptr<TempDir> place = std::make_unique<TempDir>();
  std::optional<Process> tracer{};

  fs::path rings() const { return *place / "rings"; }
  fs::path work() const { return *place / "work"; }
  void start() {
    fs::create_directory(rings());
    fs::create_directory(work());
    Command started{.argv = {tool()}, .env = {{"TMPDIR", rings()}}, .directory = work()};
    started.argv.insert(started.argv.end(), command.arguments.begin(), command.arguments.end());
    tracer.emplace(started);
  }
  void check() {
    const Outcome outcome = tracer->wait();
    const std::string what =
        command.arguments.front() + " after " + std::to_string(moment.count()) + " ms: " + outcome.err;
    const bool starts_program = !command.file.empty();
    EXPECT_TRUE(outcome.status.code() == 128 + SIGINT || outcome.status.signal() == SIGINT ||
                (!starts_program && outcome.status.code() == 0))
        << what;
    EXPECT_THAT(outcome.err, AllOf(Not(HasSubstr("cannot")), Not(HasSubstr("at once")))) << what;
    EXPECT_TRUE(fs::is_empty(rings())) << what;
    const bool was_traced =
        starts_program && !outcome.err.empty() && !outcome.err.contains("interrupted before sleep was started\n");
    // Without a sample there is nothing to write.
    const std::string& command_name = command.arguments.front();
    const bool may_lack_file = command_name == "profile" || command_name == "allocs";
    if (was_traced && (!may_lack_file || fs::exists(work() / command.file)))
      EXPECT_GT(fs::file_size(work() / command.file), 0u) << what;
    else
      EXPECT_TRUE(fs::is_empty(work())) << what;
    EXPECT_TRUE(poll_until([&] { return ::kill(-tracer->pid(), 0) != 0; })) << "left processes: " << what;
    const std::string pid = std::to_string(tracer->pid());
    for (const char* const folder : {"hooks", "suspects", "recorders"}) {
      std::error_code none;
      for (const auto& entry : fs::directory_iterator(fs::path("/run/rtev-bpf") / folder, none)) {
        const std::string name = entry.path().filename();
        EXPECT_FALSE(name.starts_with(pid) && !std::isdigit(name.c_str()[pid.size()])) << name << ": " << what;
      }
    }
  }
};

/// SIGINT to the process group, as the terminal sends it: of each command at its moment, all side by side, so that the
/// host is busy. `moments`: as many as there are commands.
void interrupt_all(const std::vector<std::chrono::milliseconds>& moments) {
  std::list<Interruption> all;
  for (std::size_t i = 0; i < moments.size(); ++i) all.emplace_back(interrupted_commands()[i], moments[i]);
  all.sort([](const Interruption& one, const Interruption& other) { return one.moment < other.moment; });
  for (Interruption& one : all) one.start();
  const auto begin = std::chrono::steady_clock::now();
  for (const Interruption& one : all) {
    // Not to wait for something: it is when the user is impatient.
    std::this_thread::sleep_until(begin + one.moment);
    ASSERT_EQ(::kill(-one.tracer->pid(), SIGINT), 0);
  }
  for (Interruption& one : all) one.check();
}

/// With RTEV_ALL_MOMENTS in the environment, each command at each 50 ms of two seconds. Else each at one moment: the
/// two seconds have as many parts as there are commands, which take turns at them.
TEST_F(StopLive, InterruptedStartLeavesNothing) {
  constexpr std::chrono::milliseconds last{2000}, step{50};
  const std::size_t commands = interrupted_commands().size();
  if (std::getenv("RTEV_ALL_MOMENTS") != nullptr) {
    for (std::chrono::milliseconds moment{0}; moment <= last; moment += step)
      interrupt_all(std::vector(commands, moment));
    return;
  }
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::chrono::milliseconds part = last / commands;
  std::uniform_int_distribution<std::chrono::milliseconds::rep> in_part(0, part.count());
  std::vector<std::chrono::milliseconds> moments;
  for (std::size_t i = 0; i < commands; ++i)
    moments.emplace_back(part * i + std::chrono::milliseconds(in_part(random)));
  std::ranges::shuffle(moments, random);
  interrupt_all(moments);
}

/// The kernel checks what is loaded for long on a busy host.
TEST_F(StopLive, TheSecondInterruptionEndsTheStartAtOnce) {
  for (const int pause_ms : {0, 5, 20, 80}) {
    Process tracer({.argv = {tool(), "stats", "--", "sleep", "600"}});
    // Until it handles signals.
    ASSERT_TRUE(poll_until([&] { return catches(tracer.pid(), SIGINT); }));
    ASSERT_EQ(::kill(-tracer.pid(), SIGINT), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));  // when the user is impatient
    tracer.signal(SIGTERM);
    const Outcome outcome = tracer.wait();
    EXPECT_TRUE(outcome.status.code() == 128 + SIGINT || outcome.status.code() == 128 + SIGTERM) << outcome.err;
    EXPECT_THAT(outcome.err, AnyOf(HasSubstr("interrupted before sleep was started"), HasSubstr("exiting at once")));
  }
}

}  // namespace
}  // namespace rtev::test
