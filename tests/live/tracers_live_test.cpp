// SPDX-License-Identifier: MIT
// Several tracers at a time and in turn. A tracer leaves nothing behind, however it ends.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "live/harness.hpp"
#include "live/matrix.hpp"
#include "live/oracle.hpp"
#include "live/process_checks.hpp"

namespace rtev::test {
namespace {

using ::testing::IsEmpty;
using Strings = std::vector<std::string>;

class TracersLive : public LiveTest {};

TEST_F(TracersLive, TwoStartedAtOnceBothSeeEveryEvent) {
  covers("lifecycle", "two tracers started at once");
  Process before(preserved("ends", {"wait"}));
  before.lines_until("ready");
  std::optional<Tracer> one, two;
  // A process is killed when the thread that started it ends.
  std::promise<void> ready;
  const std::jthread other([&](const std::stop_token& over) {
    try {
      two.emplace(Strings{"--sched", "off", "--history"});
      ready.set_value();
    } catch (...) {
      ready.set_exception(std::current_exception());
    }
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait(lock, over, [] { return false; });
  });
  one.emplace(Strings{"--sched", "off", "--history"});
  ready.get_future().get();
  std::vector<pid_t> pids{before.pid()};
  for (const char* how : {"exit:0", "_exit:1", "uncaught"}) {
    Process process(preserved("ends", {how}));
    run_through(process);
    pids.push_back(process.pid());
  }
  run_through(before);
  for (Tracer* tracer : {&*one, &*two}) {
    const Trace trace = tracer->stop();
    for (const pid_t pid : pids) expect_exact(trace, dir.path(), pid);
  }
}

TEST_F(TracersLive, OneStartedAfterAKilledOne) {
  covers("lifecycle", "tracer killed with -9 and started again");
  Process survivor(preserved("steps", {"100", "3"}));
  survivor.lines_until("ready");
  std::optional<Tracer> first(std::in_place, Strings{"--sched", "off"});
  survivor.go();
  survivor.lines_until("ready");
  first->process().line_with("\"value\":100");
  first->process().signal(SIGKILL);
  // Does not wait: the kernel is still removing its probes.
  Tracer second({"--sched", "off", "--history"});
  survivor.go();
  survivor.lines_until("ready");
  Process later(preserved("ends", {"exit:0"}));
  run_through(later);
  run_through(survivor);
  const Trace trace = second.stop();
  for (const pid_t pid : {survivor.pid(), later.pid()}) expect_exact(trace, dir.path(), pid);
  EXPECT_EQ(steps(trace, survivor.pid()), count_to(300));
}

/// How a tracer ends.
struct Ending {
  const char* label;
  const char* what;  ///< row of docs/tested.md
  int signal;        ///< 0: ends by itself
};

void PrintTo(const Ending& ending, std::ostream* out) {
  *out << ending.label;
}

/// Settings of the host that a tracer might change.
std::map<std::string, std::string> settings() {
  std::map<std::string, std::string> values;
  for (const char* name : {"kernel/bpf_stats_enabled", "kernel/unprivileged_bpf_disabled", "kernel/perf_event_paranoid",
                           "kernel/perf_event_max_sample_rate", "kernel/perf_event_mlock_kb", "kernel/kptr_restrict",
                           "kernel/sched_schedstats", "kernel/sched_rt_runtime_us", "kernel/yama/ptrace_scope",
                           "kernel/core_pattern", "kernel/task_delayacct", "net/core/bpf_jit_enable",
                           "net/core/bpf_jit_harden", "fs/nr_open", "vm/max_map_count"}) {
    std::ifstream file(std::filesystem::path("/proc/sys") / name);
    std::getline(file, values[name]);
  }
  return values;
}

/// Files in the places where tracers leave some: pinned BPF objects, and everything the tests do not share with others.
Strings files_in(const std::filesystem::path& directory) {
  Strings found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

std::string link_of(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error);
}

class LeftoversLive : public TracersLive, public ::testing::WithParamInterface<Ending> {};

TEST_P(LeftoversLive, NothingIsLeft) {
  covers("lifecycle", std::string("nothing left of a tracer that ended: ") + GetParam().what);
  const auto settings_before = settings();
  const Strings pinned_before = files_in("/sys/fs/bpf");
  Process process(with_events("ends", {"wait"}));
  process.lines_until("ready");

  // Output without an explicit path would be created here.
  const auto own = dir / "own";
  std::filesystem::create_directory(own);
  Tracer::Options options;
  options.env = {{"TMPDIR", own}, {"HOME", own}};
  Strings arguments{"--sched", "ocaml"};
  if (GetParam().signal == 0) arguments.insert(arguments.end(), {"-d", "1s"});
  Tracer tracer(arguments, options);
  // A second binary, found running.
  Process another(with_events("steps", {"10"}));
  another.lines_until("ready");
  tracer.process().line_with(R"("comm":"steps")");
  const BpfObjects objects = bpf_objects_of(tracer.process().pid());
  for (const char* kind : {"prog", "map", "link"})
    EXPECT_TRUE(std::ranges::any_of(objects, [&](const auto& object) { return object.first == kind; })) << kind;
  EXPECT_EQ(link_of("/proc/" + std::to_string(tracer.process().pid()) + "/ns/mnt"), link_of("/proc/self/ns/mnt"));

  if (GetParam().signal != 0) tracer.process().signal(GetParam().signal);
  const Outcome outcome = tracer.process().wait();
  if (GetParam().signal == SIGKILL) {
    EXPECT_EQ(outcome.status.signal(), SIGKILL);
  } else {
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  }
  EXPECT_THAT(outliving(objects), IsEmpty());
  EXPECT_EQ(settings(), settings_before);
  EXPECT_EQ(files_in("/sys/fs/bpf"), pinned_before);
  EXPECT_THAT(files_in(own), IsEmpty());
  // Programs continue undisturbed.
  EXPECT_EQ(run_through(process).status.code(), 0);
  EXPECT_EQ(run_through(another).status.code(), 0);
}

INSTANTIATE_TEST_SUITE_P(Endings, LeftoversLive,
                         ::testing::Values(Ending{"Duration", "--duration", 0}, Ending{"Interrupt", "Ctrl-C", SIGINT},
                                           Ending{"Terminate", "SIGTERM", SIGTERM}, Ending{"Kill", "SIGKILL", SIGKILL}),
                         [](const auto& ending) { return ending.param.label; });

TEST_F(TracersLive, NothingIsLeftOfATracerThatCannotStart) {
  covers("lifecycle", "nothing left of a tracer that cannot start");
  const auto settings_before = settings();
  const Strings pinned_before = files_in("/sys/fs/bpf");
  const auto own = dir / "own";
  std::filesystem::create_directory(own);
  const Command command{.argv = {}, .env = {{"TMPDIR", own}, {"HOME", own}}};
  const std::vector<Strings> starts{{"-o", dir / "missing" / "trace.jsonl"}, {"--", dir / "no-such-program"}};
  for (const Strings& arguments : starts) {
    SCOPED_TRACE(arguments.back());
    EXPECT_NE(run_tool(arguments, command).status.code(), 0);
    EXPECT_THAT(files_in(own), IsEmpty());
  }
  EXPECT_EQ(settings(), settings_before);
  EXPECT_EQ(files_in("/sys/fs/bpf"), pinned_before);
  EXPECT_FALSE(std::filesystem::exists(dir / "missing"));
}

}  // namespace
}  // namespace rtev::test
