// SPDX-License-Identifier: MIT
// A session beside programs that sleep: it sleeps, too, whatever it is asked to do.

#include <fstream>
#include <thread>

#include "live/harness.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

/// What a tracer has done so far.
struct Effort {
  std::uint64_t sleeps = 0;  ///< of the thread that runs the session
  /// Its calls of read(2). Each turn of the session makes a few, so that their number shows turns without a sleep.
  std::uint64_t reads = 0;
  std::chrono::nanoseconds cpu{};  ///< of all its processes
};

std::uint64_t number_in(const fs::path& file, std::string_view key) {
  std::ifstream words(file);
  for (std::string word; words >> word;) {
    std::uint64_t number = 0;
    if (word == key && words >> number) return number;
  }
  ADD_FAILURE() << "no " << key << " in " << file;
  return 0;
}

Effort effort_of(pid_t tracer) {
  const fs::path session = fs::path("/proc") / std::to_string(tracer) / "task" / std::to_string(tracer);
  Effort effort{.sleeps = number_in(session / "status", "voluntary_ctxt_switches:"),
                .reads = number_in(session / "io", "syscr:")};
  for (const pid_t pid : family_of(tracer)) {
    std::error_code gone;
    for (const auto& thread : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
      std::ifstream schedstat(thread.path() / "schedstat");
      std::uint64_t on_cpu_ns = 0;
      if (schedstat >> on_cpu_ns) effort.cpu += std::chrono::nanoseconds(on_cpu_ns);
    }
  }
  return effort;
}

/// What docs/limitations.md says that a session takes in a second beside programs that sleep.
struct Limits {
  double sleeps = 150, reads = 600, cpu_ms = 100;
};

struct Feature {
  std::string label;
  Strings arguments;
  int status = 0;
  Limits limits{};
};

/// Threads of other programs switch all the time, and each turn takes what there is. One turn takes a millisecond or
/// more.
constexpr Limits of_the_whole_host{.sleeps = 1100, .reads = 15'000, .cpu_ms = 800};

class IdleLive : public LiveTest, public ::testing::WithParamInterface<Feature> {};

/// Where the time of a task stays in the past, the session turns without a sleep: a hundred times as often as is
/// allowed here, also on a busy host.
TEST_P(IdleLive, ASessionSleeps) {
  Strings argv = GetParam().arguments;
  argv.insert(argv.begin(), tool());
  std::optional<Process> tracer;
  start_ready(tracer, {.argv = argv, .env = {{"RUNTIME_DIRECTORY", dir / "run"}}, .directory = dir.path()});
  // Children that end before it is their turn to have their events switched on.
  Process program(this->program("spawning"), "ready");
  program.go_until("spawned");
  using namespace std::chrono_literals;
  // Events of the last programs may be held back for a moment, for which the session looks every millisecond.
  const auto sleeps = [&] {
    const auto begin = std::chrono::steady_clock::now();
    const Effort before = effort_of(tracer->pid());
    std::this_thread::sleep_for(500ms);
    const Effort after = effort_of(tracer->pid());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const Limits& most = GetParam().limits;
    return static_cast<double>(after.sleeps - before.sleeps) < most.sleeps * seconds &&
           static_cast<double>(after.reads - before.reads) < most.reads * seconds &&
           std::chrono::duration<double, std::milli>(after.cpu - before.cpu).count() < most.cpu_ms * seconds;
  };
  EXPECT_TRUE(poll_until(sleeps));
  tracer->signal(SIGINT);
  EXPECT_EQ(tracer->wait().status.code(), GetParam().status);
}

INSTANTIATE_TEST_SUITE_P(
    , IdleLive,
    ::testing::Values(
        Feature{"Plain", {"-f", "text"}}, Feature{"Enable", {"record", "--enable"}},
        Feature{"Ringless", {"-f", "text", "--ringless"}}, Feature{"Stacks", {"-f", "text", "--stacks"}},
        Feature{"Top", {"top", "-b"}}, Feature{"OffCpu", {"profile", "--off-cpu"}},
        Feature{"AllThreads", {"record", "--sched", "all"}, 0, of_the_whole_host},
        // It ends as its command does, of the signal.
        Feature{"Command", {"record", "--", "sleep", "1000"}, 128 + SIGINT},
        Feature{"PauseSpans",
                {"agent", "--listen", "127.0.0.1:0", "--otlp", "http://127.0.0.1:9", "--pause-spans", "1ms"}},
        Feature{"Keep", {"record", "--keep", "1s", "--on", "pause>1s", "--dumps", "."}},
        Feature{"Agent", {"agent", "--listen", "127.0.0.1:0", "--otlp", "http://127.0.0.1:9", "--enable"}}),
    by_label);

}  // namespace
}  // namespace rtev::test
