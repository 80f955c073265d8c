// SPDX-License-Identifier: MIT
// Several tracers at a time and in turn. A tracer leaves nothing behind, however it ends.
#include <bpf/bpf.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/unique_fd.hpp"
#include "live/harness.hpp"
#include "live/oracle.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

class TracersLive : public LiveTest {};

TEST_F(TracersLive, TwoStartedAtOnceBothSeeEveryEvent) {
  covers("lifecycle", "two tracers started at once");
  Process before(preserved("ends", {"wait"}), "ready");
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

TEST_F(TracersLive, TracerStartedAfterAKilledOneSeesEveryEvent) {
  covers("lifecycle", "tracer killed with -9 and started again");
  Process survivor(preserved("steps", {"100", "3"}), "ready");
  std::optional<Tracer> first(std::in_place, Strings{"--sched", "off"});
  survivor.go_until("ready");
  first->process().line_with("\"value\":100");
  first->process().signal(SIGKILL);
  // Does not wait: the kernel is still removing its probes.
  Tracer second({"--sched", "off", "--history"});
  survivor.go_until("ready");
  Process later(preserved("ends", {"exit:0"}));
  run_through(later);
  run_through(survivor);
  const Trace trace = second.stop();
  for (const pid_t pid : {survivor.pid(), later.pid()}) expect_exact(trace, dir.path(), pid);
  EXPECT_EQ(steps(trace, survivor.pid()), count_to(300));
}

/// Each looks at the processes of all others.
TEST_F(TracersLive, ManyStartedAtOnceAllFindAProgram) {
  Process program(with_events("steps", {"10", "2"}), "ready");
  constexpr int many = 50;
  std::vector<std::future<Outcome>> tracers;
  for (int i = 0; i < many; ++i)
    tracers.push_back(
        std::async(std::launch::async, [] { return run_tool({"-d", "6s", "-n", "steps", "-f", "jsonl"}); }));
  for (std::future<Outcome>& tracer : tracers) {
    const Outcome outcome = tracer.get();
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
    EXPECT_THAT(outcome.err, Not(HasSubstr("no OCaml 5 program that runs now matches")));
    EXPECT_THAT(outcome.out, HasSubstr("\"comm\":\"steps\""));
  }
}

/// BPF objects: kind ("prog", "map", "link", "btf") and id.
using BpfObjects = std::set<std::pair<std::string, std::uint32_t>>;

int fd_by_id(const std::string& kind, std::uint32_t id) {
  if (kind == "prog") return ::bpf_prog_get_fd_by_id(id);
  if (kind == "map") return ::bpf_map_get_fd_by_id(id);
  if (kind == "link") return ::bpf_link_get_fd_by_id(id);
  return ::bpf_btf_get_fd_by_id(id);
}

/// BPF objects that a process holds.
BpfObjects bpf_objects_of(pid_t pid) {
  BpfObjects objects;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fdinfo")) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      for (const char* kind : {"prog", "map", "link", "btf"}) {
        const std::string label = std::string(kind) + "_id:";
        if (line.starts_with(label)) objects.emplace(kind, std::stoul(line.substr(label.size())));
      }
    }
  }
  return objects;
}

/// Waits until none of these objects exists; returns those that still exist at the timeout.
BpfObjects outliving(BpfObjects objects) {
  // The kernel frees them asynchronously, after one or two grace periods.
  poll_until([&] {
    std::erase_if(objects, [](const auto& object) { return !UniqueFd(fd_by_id(object.first, object.second)); });
    return objects.empty();
  });
  return objects;
}

/// How a tracer ends.
struct TracerEnding {
  const char* label;
  const char* what;  ///< row of docs/tested.md
  int signal;        ///< 0: ends by itself
};

/// Settings of the host that a tracer might change.
std::map<std::string, std::string> settings() {
  std::map<std::string, std::string> values;
  for (const char* name : {"kernel/bpf_stats_enabled", "kernel/unprivileged_bpf_disabled", "kernel/perf_event_paranoid",
                           "kernel/perf_event_max_sample_rate", "kernel/perf_event_mlock_kb", "kernel/kptr_restrict",
                           "kernel/sched_schedstats", "kernel/sched_rt_runtime_us", "kernel/yama/ptrace_scope",
                           "kernel/core_pattern", "kernel/task_delayacct", "net/core/bpf_jit_enable",
                           "net/core/bpf_jit_harden", "fs/nr_open", "vm/max_map_count"}) {
    std::ifstream file(fs::path("/proc/sys") / name);
    std::getline(file, values[name]);
  }
  return values;
}

/// Files in the places where tracers leave some: pinned BPF objects, and everything the tests do not share with others.
Strings files_in(const fs::path& directory) {
  Strings found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

std::string link_of(const fs::path& path) {
  std::error_code error;
  return fs::read_symlink(path, error);
}

class LeftoversLive : public TracersLive, public ::testing::WithParamInterface<TracerEnding> {};

TEST_P(LeftoversLive, NothingIsLeft) {
  covers("lifecycle", std::string("nothing left of a tracer that ended: ") + GetParam().what);
  const auto settings_before = settings();
  const Strings pinned_before = files_in("/sys/fs/bpf");
  Process process(with_events("ends", {"wait"}), "ready");

  // Output without an explicit path would be created here.
  const auto own = dir / "own";
  fs::create_directory(own);
  Tracer::Options options;
  options.env = {{"TMPDIR", own}, {"HOME", own}};
  Strings arguments{"--sched", "ocaml"};
  if (GetParam().signal == 0) arguments.insert(arguments.end(), {"-d", "1s"});
  Tracer tracer(arguments, options);
  // A second binary, found running.
  Process another(with_events("steps", {"10"}), "ready");
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
                         ::testing::Values(TracerEnding{"Duration", "--duration", 0},
                                           TracerEnding{"Interrupt", "Ctrl-C", SIGINT},
                                           TracerEnding{"Terminate", "SIGTERM", SIGTERM},
                                           TracerEnding{"Kill", "SIGKILL", SIGKILL}),
                         by_label);

TEST_F(TracersLive, NothingIsLeftOfATracerThatCannotStart) {
  covers("lifecycle", "nothing left of a tracer that cannot start");
  const auto settings_before = settings();
  const Strings pinned_before = files_in("/sys/fs/bpf");
  const auto own = dir / "own";
  fs::create_directory(own);
  const Command command{.argv = {}, .env = {{"TMPDIR", own}, {"HOME", own}}};
  const std::vector<Strings> starts{{"-o", dir / "missing" / "trace.jsonl"}, {"--", dir / "no-such-program"}};
  for (const Strings& arguments : starts) {
    SCOPED_TRACE(arguments.back());
    EXPECT_NE(run_tool(arguments, command).status.code(), 0);
    EXPECT_THAT(files_in(own), IsEmpty());
  }
  EXPECT_EQ(settings(), settings_before);
  EXPECT_EQ(files_in("/sys/fs/bpf"), pinned_before);
  EXPECT_FALSE(fs::exists(dir / "missing"));
}

}  // namespace
}  // namespace rtev::test
