// SPDX-License-Identifier: MIT
// Programs that have the same pid in turn: forks, execs, pid reuse. Every event is attributed to its writer, no matter
// when the tracer learns of it.
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <thread>

#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

/// Records of one of the programs that had this pid.
Records records_of(const Trace& trace, pid_t pid, const std::string& comm) {
  std::vector<Json> events = trace.from_rings(pid);
  std::erase_if(events, [&](const Json& event) { return event["comm"] != comm; });
  return records(events);
}

class ForkLive : public LiveTest {};

TEST_F(ForkLive, Delivers300ForkedChildren) {
  covers("lifecycle", "fork storm: 300 children");
  Tracer tracer({"--sched", "off"});
  Process process(preserved("storm", {"300", "30"}));
  process.close_stdin();
  Strings lines = process.lines_until("done");
  process.wait();
  const Trace trace = tracer.stop();
  std::erase(lines, "ready");
  ASSERT_EQ(lines.size(), 300u);
  auto children = trace.by_process();
  for (const std::string& line : lines) {
    SCOPED_TRACE(line);
    const pid_t child = std::stoi(line);
    const std::int64_t wrote = std::stoi(line.substr(line.find(' ')));
    const Trace& story = children[child];
    EXPECT_EQ(steps(story, child), count_to(wrote));
    EXPECT_EQ(story.action(child, "fork")["parent"], process.pid());
    EXPECT_EQ(story.action(child, "exit")["status"], Json({{"code", 0}}));
    expect_all_delivered(story, child);
  }
  for (std::size_t i = 0; i < lines.size(); i += 20) {
    const pid_t child = std::stoi(lines[i]);
    expect_exact(children[child], dir.path(), child);
  }
  EXPECT_EQ(trace.summary["rings_missed"], 0);
}

bool is_end_of(const std::vector<std::int64_t>& numbers, const std::vector<std::int64_t>& all) {
  return numbers.size() <= all.size() && std::ranges::equal(numbers, std::span(all).last(numbers.size()));
}

/// A chain of programs that differ only in their names.
class ExecLive : public LiveTest {
 protected:
  struct Image {
    std::string name;
    std::int64_t steps;
    bool waits = false;
  };

  /// Excludes other programs that happen to run.
  const Strings options{"--sched", "off", "--save-rings", "all", "-n", "image*"};

  Command chain(const std::vector<Image>& images) const {
    Command command = preserved("chain");
    command.argv = {"sh", "-c", R"(exec "$0" "$@")"};
    for (const Image& image : images) {
      const auto path = dir / image.name;
      fs::copy_file(ocaml_program("chain"), path, fs::copy_options::skip_existing);
      command.argv.insert(command.argv.end(), {path, std::to_string(image.steps)});
      if (image.waits) command.argv.push_back("wait");
    }
    return command;
  }

  /// Every program's events are attributed to it, whatever happened to the file. Of a ring that wrapped around before
  /// it could be read, its last content is expected.
  void expect_all(const Trace& trace, pid_t pid, const std::vector<Image>& images, std::int64_t ring_words = 1 << 16) {
    constexpr std::int64_t step_words = 3, other_words = 64;
    for (const Image& image : images) {
      SCOPED_TRACE(image.name);
      const auto numbers = steps(trace, pid, image.name), all = count_to(image.steps);
      EXPECT_TRUE(is_end_of(numbers, all)) << ::testing::PrintToString(numbers);
      EXPECT_GE(std::ssize(numbers), std::min(image.steps, (ring_words - other_words) / step_words));
    }
    EXPECT_EQ(trace.summary["rings_missed"], 0);
    // Only the last program's ring file is left.
    EXPECT_EQ(difference(oracle(dir.path(), pid), records_of(trace, pid, images.back().name)), "");
  }

  /// Number of programs reported as the next image of the process.
  static Strings named(const Trace& trace, pid_t pid) {
    Strings names;
    for (const Json& event : trace.of(pid, "process"))
      if (event["action"] == "exec") names.push_back(event["comm"]);
    return names;
  }
};

TEST_F(ExecLive, DeliversAChainFromShellToOcamlToOcaml) {
  covers("lifecycle", "exec chain: shell, OCaml, OCaml");
  const std::vector<Image> images{{"image0", 40, true}, {"image1", 3000, true}, {"image2", 7}};
  Tracer tracer(options);
  Process process(chain(images));
  for (int image = 0; image < 2; ++image) {
    tracer.process().line_with(R"("action":"ring")");
    process.lines_until("ready");
    process.go();
  }
  EXPECT_EQ(run_through(process).status.code(), 0);
  const Trace trace = tracer.stop();
  expect_all(trace, process.pid(), images);
  EXPECT_THAT(named(trace, process.pid()), ElementsAre("image0", "image1", "image2"));
  for (const Json& image : trace.summary["processes"]) {
    if (image["pid"] != process.pid()) continue;
    EXPECT_EQ("image" + std::to_string(image["exec_generation"].get<int>()), image["comm"].get<std::string>());
    EXPECT_EQ(image["ring"], image["comm"] == "image2" ? "stopped" : "ended");
  }
}

struct Stall {
  const char* label;
  const char* what;           ///< row of docs/tested.md
  std::int64_t second, last;  ///< numbers of steps
  bool last_waits;
  int log2_words = 16;  ///< size of the ring
};

class ExecStallLive : public ExecLive, public ::testing::WithParamInterface<Stall> {};

/// The tracer is stopped after it has opened the first program's ring, and resumes when the file belongs to another.
TEST_P(ExecStallLive, EventsAreAttributedToTheirProgram) {
  covers("lifecycle", std::string("exec chain under a stopped tracer: ") + GetParam().what);
  const Stall& stall = GetParam();
  const std::vector<Image> images{
      {"image0", 40, true}, {"image1", stall.second}, {"image2", 30}, {"image3", stall.last, stall.last_waits}};
  Command command = chain(images);
  command.env["OCAMLRUNPARAM"] = "e=" + std::to_string(stall.log2_words);
  Tracer tracer(options);
  Process process(command);
  tracer.process().line_with(R"("action":"ring")");
  process.lines_until("ready");
  tracer.process().stop();
  process.go();
  if (stall.last_waits) {
    process.lines_until("ready");
    tracer.process().resume();
    tracer.process().line_with(R"("comm":"image3")");
  }
  EXPECT_EQ(run_through(process).status.code(), 0);
  tracer.process().resume();
  const Trace trace = tracer.stop();
  expect_all(trace, process.pid(), images, std::int64_t{1} << stall.log2_words);
  EXPECT_THAT(Strings({"image0", "image1", "image2", "image3"}), IsSupersetOf(named(trace, process.pid())));
}

INSTANTIATE_TEST_SUITE_P(Lives, ExecStallLive,
                         ::testing::Values(Stall{"Ended", "all have ended", 20, 50, false},
                                           Stall{"Living", "the last one still runs", 20, 50, true},
                                           Stall{"WrappedAround", "all have ended, a ring wrapped around", 400, 50,
                                                 false, 9},
                                           Stall{"LivingAndWrappedAround",
                                                 "the last one still runs, a ring wrapped around", 400, 50, true, 9}),
                         by_label);

TEST_F(ExecLive, DeliversChainsUnderATracerStoppedAtAnyMoment) {
  covers("lifecycle", "exec chains under a tracer stopped at any moment");
  std::vector<Image> images;
  for (int i = 0; i < 6; ++i) images.push_back({"image" + std::to_string(i), 5 + 3 * i});
  Tracer tracer(options);
  std::vector<pid_t> pids;
  for (int round = 0; round < 12; ++round) {
    Process process(chain(images));
    while (process.running()) {
      tracer.process().stop();
      // Not used for synchronisation: varies the moment.
      std::this_thread::sleep_for(std::chrono::microseconds(700 * round));
      tracer.process().resume();
      std::this_thread::sleep_for(std::chrono::microseconds(500 * (round % 4)));
    }
    EXPECT_EQ(run_through(process).status.code(), 0);
    pids.push_back(process.pid());
  }
  const Trace trace = tracer.stop();
  for (const pid_t pid : pids) {
    SCOPED_TRACE(pid);
    expect_all(trace, pid, images);
  }
}

/// A pid that two programs have, one after the other.
class PidLive : public LiveTest {
 protected:
  /// Excludes other programs that happen to run.
  const Strings options{"--sched", "off", "-n", "ends", "-n", "steps"};

  /// Runs a program as process `pid`.
  static std::unique_ptr<Process> run_as(pid_t pid, Command command) {
    constexpr int max_tries = 2000;  // other processes fork, too
    // Starts the program only if the pid is right: the tracer would count rings of the others as missed.
    const Strings wait{"sh", "-c", R"(read -r go && exec "$0" "$@")"};
    command.argv.insert(command.argv.begin(), wait.begin(), wait.end());
    for (int tries = 0; tries < max_tries; ++tries) {
      std::ofstream("/proc/sys/kernel/ns_last_pid") << pid - 1;
      auto process = std::make_unique<Process>(command);
      if (process->pid() != pid) continue;
      process->go();
      return process;
    }
    throw std::runtime_error("other processes always take pid " + std::to_string(pid));
  }

  struct Twins {
    pid_t pid;
    Records first, second;  ///< last content of their rings
  };
  /// The second program in its own directory, or in the first one's, where it takes over the file.
  Twins run_twins(bool own_directory) {
    const pid_t pid = run_to_end(preserved("ends", {"exit:3"}), 3);
    Twins twins{.pid = pid, .first = oracle(dir.path(), pid), .second = {}};
    Command command = preserved("steps", {"60"});
    if (own_directory) {
      fs::create_directory(dir / "own");
      command.env["OCAML_RUNTIME_EVENTS_DIR"] = dir / "own";
    }
    const auto second = run_as(twins.pid, command);
    EXPECT_EQ(run_through(*second).status.code(), 0);
    twins.second = oracle(own_directory ? dir / "own" : dir.path(), twins.pid);
    return twins;
  }
};

TEST_F(PidLive, EventsOfAReusedPidAreAttributedToTheirProgram) {
  covers("lifecycle", "pid reused, and the ring file with it");
  Tracer tracer(options);
  const Twins twins = run_twins(false);
  const Trace trace = tracer.stop();
  EXPECT_EQ(difference(twins.first, records_of(trace, twins.pid, "ends")), "");
  EXPECT_EQ(difference(twins.second, records_of(trace, twins.pid, "steps")), "");
  EXPECT_THAT(trace.actions(twins.pid), ElementsAre("exec", "ring", "stop", "exit", "exec", "ring", "stop", "exit"));
}

TEST_F(PidLive, EventsOfAPidReusedUnderAStoppedTracerAreAttributed) {
  covers("lifecycle", "pid reused under a stopped tracer");
  for (const bool own_directory : {true, false}) {
    SCOPED_TRACE(own_directory);
    Tracer tracer(options);
    tracer.process().stop();
    const Twins twins = run_twins(own_directory);
    tracer.process().resume();
    const Trace trace = tracer.stop();
    // Words that the second program overwrote cannot be delivered.
    EXPECT_EQ(difference(own_directory ? twins.first : Records{}, records_of(trace, twins.pid, "ends")), "");
    EXPECT_EQ(difference(twins.second, records_of(trace, twins.pid, "steps")), "");
    EXPECT_EQ(trace.summary["rings_missed"], own_directory ? 0 : 1);
  }
}

}  // namespace
}  // namespace rtev::test
