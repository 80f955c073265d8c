// SPDX-License-Identifier: MIT
// Which rights a tracer and a reader keep, and that they can do all of their work with them.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "kernel/features.hpp"
#include "live/harness.hpp"
#include "live/oracle.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

using Status = std::map<std::string, std::string>;

/// The first value of each line of /proc/PID/status.
Status status_of(const fs::path& process) {
  Status status;
  std::istringstream lines(read_file(process / "status"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, value;
    words >> name >> value;
    status[name] = value;
  }
  return status;
}

std::vector<Status> threads_of(pid_t pid) {
  std::vector<Status> threads;
  for (const fs::directory_entry& thread : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task"))
    threads.push_back(status_of(thread.path()));
  return threads;
}

/// The helper process of a tracer and its workers.
std::vector<Status> helpers_of(pid_t pid) {
  std::vector<Status> helpers;
  std::set<std::string> parents{std::to_string(pid)};
  for (std::size_t known = 0; known != parents.size();) {
    known = parents.size();
    helpers.clear();
    for (const fs::directory_entry& process : fs::directory_iterator("/proc")) {
      if (!fs::exists(process.path() / "status")) continue;
      Status status = status_of(process.path());
      if (!parents.contains(status["PPid:"])) continue;
      parents.insert(status["Pid:"]);
      helpers.push_back(std::move(status));
    }
  }
  return helpers;
}

constexpr const char* tracing = "0000000000800000";          // SYS_NICE
constexpr const char* tracing_as_root = "0000000000800002";  // and DAC_OVERRIDE

constexpr const char* attaching_tracepoints = "000000c000000000";  // BPF, PERFMON
/// The same; before Linux 6.6 SYS_ADMIN, too.
std::string attaching_uprobes() {
  return kernel::inspect_host().uprobe_multi ? attaching_tracepoints : "000000c000200000";
}

constexpr const char* looking = "0000010000080004";           // SYS_PTRACE, DAC_READ_SEARCH, CHECKPOINT_RESTORE
constexpr const char* starting_lookers = "0000010000881004";  // and NET_ADMIN, SYS_NICE
constexpr const char* closing = "0000000000000000";

const std::map<std::string, std::string> sudo{{"SUDO_UID", "65534"}, {"SUDO_GID", "65534"}, {"SUDO_USER", "nobody"}};

class ConfinementLive : public LiveTest {
 protected:
  static void expect_confined(pid_t tracer, const std::string& user, const std::string& capabilities,
                              std::size_t min_threads = 3) {
    const std::vector<Status> threads = threads_of(tracer);
    EXPECT_GE(threads.size(), min_threads);
    for (Status thread : threads) {
      EXPECT_EQ(thread["Uid:"], user);
      EXPECT_EQ(thread["CapPrm:"], capabilities);
      EXPECT_EQ(thread["CapEff:"], capabilities);
      EXPECT_EQ(thread["NoNewPrivs:"], "1");
      EXPECT_EQ(thread["Seccomp:"], "2") << "a filter";
    }
    struct stat memory{};
    ASSERT_EQ(::stat(("/proc/" + std::to_string(tracer) + "/mem").c_str(), &memory), 0);
    EXPECT_EQ(memory.st_uid, 0u) << "not dumpable";
  }

  /// Runs dump, convert and stats on a ring file, a recording and a process, and looks at them while their output takes
  /// nothing.
  void expect_readers_confined(const std::map<std::string, std::string>& env, uid_t user,
                               const std::string& capabilities) {
    Process program(with_events("busy_alloc"), "ready");
    const std::string ring = ring_of(run_to_end(preserved("busy_alloc"))), recording = dir / "a.fxt";
    convert(ring, recording);
    const std::string fifo = dir / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    for (const std::string& file : {ring, recording, fifo}) ASSERT_EQ(::chown(file.c_str(), user, user), 0);
    const UniqueFd reader(::open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    const std::vector<char> bytes(4096);
    while (::write(reader.get(), bytes.data(), bytes.size()) > 0) {
    }
    const std::string pid = std::to_string(program.pid());
    for (const Strings& arguments : std::vector<Strings>{{"dump", pid},
                                                         {"stats", "-i", pid},
                                                         {"dump", ring},
                                                         {"convert", "-f", "fxt", recording},
                                                         {"stats", "-i", recording}}) {
      Strings argv{tool()};
      argv.insert(argv.end(), arguments.begin(), arguments.end());
      argv.insert(argv.end(), {"-o", fifo});
      Process tool({.argv = argv, .env = env});
      const fs::path process = fs::path("/proc") / std::to_string(tool.pid());
      EXPECT_TRUE(poll_until([&] { return status_of(process)["Seccomp:"] == "2" || !tool.running(); }));
      SCOPED_TRACE(testing::PrintToString(arguments));
      ASSERT_TRUE(tool.running()) << tool.wait().err;
      expect_confined(tool.pid(), std::to_string(user), capabilities, 1);
    }
  }
};

TEST_F(ConfinementLive, UnderSudoItIsTheCaller) {
  covers("place", "under sudo: the tracer becomes its caller");
  // Its binary was never inspected: that, and its probes, come after the tracer has given up its rights.
  Process process(copied(program("api_start"), "new"), "ready");
  const pid_t pid = process.pid();
  Tracer tracer({}, {.env = sudo});
  expect_confined(tracer.process().pid(), "65534", tracing);
  const std::vector<Status> helpers = helpers_of(tracer.process().pid());
  EXPECT_GE(helpers.size(), 3u);
  std::vector<std::string> attachers;  // their capabilities
  for (Status helper : helpers) {
    if (helper["Uid:"] != "0") {
      attachers.push_back(helper["CapEff:"]);
      EXPECT_EQ(helper["Uid:"], "65534");
      EXPECT_EQ(helper["Seccomp:"], "2");
      continue;
    }
    EXPECT_THAT(helper["CapEff:"], AnyOf(looking, starting_lookers, closing));
  }
  EXPECT_THAT(attachers, UnorderedElementsAre(attaching_uprobes(), attaching_tracepoints));
  run_through(process);
  const Outcome outcome = tracer.interrupt();
  const Trace trace = Trace::parse(outcome.out);
  EXPECT_THAT(trace.actions(pid), ElementsAre("found", "ring", "pause", "resume", "stop", "exit")) << outcome.err;
  expect_all_delivered(trace, pid);
  EXPECT_THAT(trace.of("switch"), Not(IsEmpty()));
}

TEST_F(ConfinementLive, UnderSudoLaterFilesAreTheCallers) {
  ASSERT_EQ(::chown(dir.path().c_str(), nobody, nobody), 0);
  ASSERT_EQ(::chmod(dir.path().c_str(), 0700), 0);
  const std::string output = dir / "trace.jsonl";
  const Outcome outcome = run_tool({"-q", "-f", "jsonl", "-o", output, "--max-size", "256K", "--max-files", "3", "--",
                                    ocaml_program("busy_alloc"), "3000"},
                                   {.argv = {}, .env = sudo});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  std::size_t files = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(dir.path())) {
    struct stat status{};
    ASSERT_EQ(::stat(file.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, nobody) << file.path();
    ++files;
  }
  EXPECT_GE(files, 2u);
}

TEST_F(ConfinementLive, RootKeepsWhatItNeeds) {
  Process process(copied(program("api_start"), "new"), "ready");
  Tracer tracer({"--ringless"});
  expect_confined(tracer.process().pid(), "0", tracing_as_root);
  run_through(process);
  EXPECT_THAT(tracer.stop().actions(process.pid()),
              ElementsAre("found", "probe", "ring", "pause", "resume", "stop", "exit"));
}

TEST_F(ConfinementLive, ReadersUnderSudoAreTheCaller) {
  expect_readers_confined(sudo, nobody, "0000000000000000");
}

TEST_F(ConfinementLive, ReadersOfRootKeepWhatWritesFiles) {
  expect_readers_confined({}, 0, "0000000000000002");  // DAC_OVERRIDE
  // Into a directory of another user.
  ASSERT_EQ(::chown(dir.path().c_str(), nobody, nobody), 0);
  ASSERT_EQ(::chmod(dir.path().c_str(), 0700), 0);
  convert(dir / "a.fxt", dir / "b.jsonl");
}

}  // namespace
}  // namespace rtev::test
