// SPDX-License-Identifier: MIT
// Rings that the tracer could not open in time because it was stopped while their programs ran. BPF saves them when
// they are unmapped.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include "live/harness.hpp"
#include "live/matrix.hpp"
#include "live/oracle.hpp"
#include "rtev/ring_reader.hpp"

namespace rtev::test {
namespace {

using ::testing::IsSupersetOf;
using Strings = std::vector<std::string>;

class DrainLive : public LiveTest {
 protected:
  static void stall(Tracer& tracer) {
    tracer.process().signal(SIGSTOP);
    siginfo_t stopped{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(tracer.process().pid()), &stopped, WSTOPPED), 0);
  }

  static std::uint64_t total(const Trace& trace, pid_t pid, const char* part) { return trace.words(pid)[part]; }

  /// A copy of a program: a binary that no tracer has inspected.
  Command unseen(Command command, const char* name) const {
    const auto copy = dir / name;
    std::filesystem::copy_file(command.argv[0], copy);
    command.argv[0] = copy;
    return command;
  }

  /// Runs a program while the tracer is stopped and expects all of its events.
  static void expect_saved_by_all(const Command& command) {
    Tracer tracer({"--sched", "off", "--save-rings", "all"});
    stall(tracer);
    Process process(command);
    EXPECT_EQ(run_through(process).status.code(), 0);
    tracer.process().signal(SIGCONT);
    const Trace trace = tracer.stop();
    const auto events = trace.of(process.pid(), "user");
    ASSERT_EQ(events.size(), 10u);
    for (const Json& event : events) EXPECT_EQ(event["name"], "number");
    EXPECT_EQ(total(trace, process.pid(), "delivered"), total(trace, process.pid(), "written"));
    EXPECT_THAT(trace.actions(process.pid()), IsSupersetOf({"ring", "stop", "exit"}));
  }
};

struct Run {
  const char* label;
  const char* what;  ///< row of docs/tested.md
  const char* program;
  Strings arguments;
  int status;
};

void PrintTo(const Run& run, std::ostream* out) {
  *out << run.label;
}

class KnownDrainLive : public DrainLive, public ::testing::WithParamInterface<Run> {};

/// The ring file stays, for comparison. The tracer still reads the saved ring, since it looks for that first.
TEST_P(KnownDrainLive, SavesWhatTheRingHolds) {
  covers("lifecycle", std::string("ends while the tracer is stopped: ") + GetParam().what);
  // Before the tracer is stopped, the binary is known and its functions are probed.
  Process known(program(GetParam().program, {"1", "1"}));
  known.lines_until("ready");
  Tracer tracer({"--sched", "off", "-n", GetParam().program});
  stall(tracer);
  Process process(preserved(GetParam().program, GetParam().arguments));
  EXPECT_EQ(run_through(process).status.code(), GetParam().status);
  Records truth = oracle(dir.path(), process.pid());
  // Words overwritten early count as history, as in any ring that is opened late.
  for (auto& [domain, lines] : truth) std::erase_if(lines, [](const auto& line) { return line.contains(" lost "); });
  std::filesystem::remove(ring_of(process.pid()));
  tracer.process().signal(SIGCONT);
  const Trace trace = tracer.stop();
  EXPECT_EQ(difference(truth, records(trace.from_rings(process.pid()))), "");
  EXPECT_EQ(trace.summary["rings_missed"], 0);
  EXPECT_THAT(trace.actions(process.pid()), IsSupersetOf({"ring", "stop", "exit"}));
  EXPECT_EQ(trace.action(process.pid(), "ring")["path"], ring_of(process.pid()).string());
  EXPECT_EQ(total(trace, process.pid(), "lost"), 0u);
  EXPECT_EQ(total(trace, process.pid(), "corrupt"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Programs, KnownDrainLive,
                         ::testing::Values(Run{"Short", "a short program", "numbered", {"20"}, 0},
                                           Run{"Domains", "several domains", "domains", {"3", "3"}, 0},
                                           Run{"UserEvents", "user events of every type", "user_events", {}, 0},
                                           Run{"FullRing", "a full ring", "busy_alloc", {"700"}, 0}),
                         [](const auto& run) { return std::string(run.param.label); });

TEST_F(DrainLive, EveryOneOfManyThatLeaveNothing) {
  covers("lifecycle", "200 programs end while the tracer is stopped");
  Process known(program("numbered", {"0", "gated"}));
  known.lines_until("ready");
  Tracer tracer({"--sched", "off", "-n", "numbered"});
  stall(tracer);
  std::vector<pid_t> pids;
  for (int i = 0; i < 200; ++i) {
    Process process(with_events("numbered", {"10"}));
    EXPECT_EQ(run_through(process).status.code(), 0);
    pids.push_back(process.pid());
  }
  tracer.process().signal(SIGCONT);
  const Trace trace = tracer.stop();
  EXPECT_EQ(trace.summary["rings_missed"], 0);
  for (const pid_t pid : pids) {
    const auto events = trace.of(pid, "user");
    ASSERT_EQ(events.size(), 10u) << pid;
    for (int n = 0; n < 10; ++n) EXPECT_EQ(events[static_cast<std::size_t>(n)]["value"], n);
    EXPECT_EQ(total(trace, pid, "delivered"), total(trace, pid, "written"));
  }
}

TEST_F(DrainLive, AllSavesThoseOfUnknownPrograms) {
  covers("lifecycle", "a program of an unknown binary ends while the tracer is stopped (--save-rings all)");
  expect_saved_by_all(unseen(with_events("numbered", {"10"}), "unseen"));
}

TEST_F(DrainLive, AllSavesThoseOfStrippedPrograms) {
  covers("lifecycle", "a stripped program ends while the tracer is stopped (--save-rings all)");
  const Command stripped = unseen(with_events("numbered", {"10"}), "stripped");
  ASSERT_EQ(run({.argv = {"strip", stripped.argv[0]}}).status.code(), 0);
  expect_saved_by_all(stripped);
}

TEST_F(DrainLive, OffSavesNothing) {
  Process known(program("numbered", {"0", "gated"}));
  known.lines_until("ready");
  Tracer tracer({"--sched", "off", "--save-rings", "off", "-n", "numbered"});
  stall(tracer);
  Process process(with_events("numbered", {"10"}));
  EXPECT_EQ(run_through(process).status.code(), 0);
  tracer.process().signal(SIGCONT);
  const Trace trace = tracer.stop();
  EXPECT_EQ(trace.summary["rings_missed"], 1);
  EXPECT_TRUE(trace.from_rings(process.pid()).empty());
}

/// Twelve full rings are more than the buffer of saved rings holds.
TEST_F(DrainLive, WhatFindsNoRoomIsCounted) {
  covers("lifecycle", "more rings end while the tracer is stopped than BPF can save: counted");
  Process known(program("busy_alloc", {"1"}));
  known.lines_until("ready");
  Tracer tracer({"--sched", "off", "-n", "busy_alloc"});
  stall(tracer);
  std::map<pid_t, std::uint64_t> written;
  for (int i = 0; i < 12; ++i) {
    Process process(preserved("busy_alloc", {"700"}));
    EXPECT_EQ(run_through(process).status.code(), 0);
    const auto file = RingReader::open(ring_of(process.pid()));
    ASSERT_TRUE(file);
    written[process.pid()] = file->accounting().written;
    std::filesystem::remove(ring_of(process.pid()));
  }
  tracer.process().signal(SIGCONT);
  const Trace trace = tracer.stop();
  EXPECT_GT(trace.summary["drops"]["drain"], 0);
  EXPECT_EQ(trace.summary["rings_missed"], 0);
  std::uint64_t lost = 0, delivered = 0;
  for (const auto& [pid, words] : written) {
    EXPECT_EQ(total(trace, pid, "written"), words);
    EXPECT_EQ(total(trace, pid, "corrupt"), 0u);
    std::uint64_t reported = 0;
    for (const Json& loss : trace.of(pid, "lost")) reported += loss["words"].get<std::uint64_t>();
    EXPECT_EQ(reported, total(trace, pid, "lost"));
    lost += reported;
    delivered += total(trace, pid, "delivered");
  }
  EXPECT_GT(lost, 0u);
  EXPECT_GT(delivered, 0u);
}

}  // namespace
}  // namespace rtev::test
