// SPDX-License-Identifier: MIT
// The flight recorder: conditions of real programs make dumps, which say what another recording of the time says.
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "base/clock.hpp"
#include "live/analysis_fixture.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

/// Waits for a state that another process reaches.
template <typename Condition>
void until(const Condition& condition) {
  if (!poll_until(condition)) throw std::runtime_error("timeout while waiting for a dump");
}

class FlightLive : public AnalysisLive {
 protected:
  Tracer::Options recorder() const {
    return {.format = {"record"}, .env = {{"RUNTIME_DIRECTORY", (dir / "run").string()}}};
  }
  Strings with_dumps(Strings arguments) const {
    arguments.insert(arguments.end(), {"--dumps", dir / "dumps"});
    return arguments;
  }
  Strings files(const std::string& suffix) const {
    Strings found;
    if (!fs::exists(dir / "dumps")) return found;
    for (const auto& entry : fs::directory_iterator(dir / "dumps"))
      if (entry.path().string().ends_with(suffix)) found.push_back(entry.path());
    return found;
  }
  Strings dumps() const { return files(".fxt.gz"); }
  Outcome snap() const {
    return run_tool({"snap"}, {.argv = {}, .env = {{"RUNTIME_DIRECTORY", (dir / "run").string()}}});
  }
  /// The program works until there is a dump: the recorder is not armed at first.
  void work_until_dump(Process& program) const {
    for (const std::uint64_t deadline = monotonic_ns() + std::chrono::nanoseconds(wait_timeout).count();
         dumps().empty() && monotonic_ns() < deadline;)
      program.go_until("paused");
    ASSERT_THAT(dumps(), SizeIs(1));
  }
};

/// What happened in the rings of a process from a time to another one, as text.
Strings events_between(const Trace& trace, pid_t pid, std::uint64_t from_ns, std::uint64_t to_ns) {
  Strings texts;
  for (Json event : trace.from_rings(pid)) {
    const std::uint64_t time = event["ts"];
    event.erase("time");  // each run has read the clock for itself
    if (time >= from_ns && time < to_ns) texts.push_back(event.dump());
  }
  return texts;
}

TEST_F(FlightLive, AnyOfSeveralConditionsMakesADump) {
  // Whatever their order: one of them is met.
  for (const Strings& conditions : {Strings{"pause>100ms", "lost"}, {"lost", "heap>100G", "pause>100ms"}}) {
    Process program(with_events("long_pause", {"0.2"}), "ready");
    Strings arguments{"--keep", "300ms", "--after", "1ms", "-p", std::to_string(program.pid())};
    for (const std::string& condition : conditions) arguments.insert(arguments.end(), {"--on", condition});
    Tracer kept(with_dumps(arguments), recorder());
    work_until_dump(program);
    EXPECT_THAT(kept.interrupt().err, HasSubstr("pause>100ms of long_pause/")) << ::testing::PrintToString(conditions);
    fs::remove_all(dir / "dumps");
  }
}

TEST_F(FlightLive, NoDumpIsMadeWhereTheDiskIsFull) {
  Process program(with_events("long_pause", {"0.2"}), "ready");
  const std::string pid = std::to_string(program.pid());
  for (const char* const command : {"record", "agent"}) {
    Strings arguments{"--keep", "300ms", "--min-free", "100%", "-p", pid};
    if (command == std::string("agent")) arguments.insert(arguments.end(), {"--listen", "127.0.0.1:0"});
    Tracer::Options options = recorder();
    options.format = {command};
    Tracer kept(with_dumps(arguments), options);
    const Outcome asked = snap();
    EXPECT_EQ(asked.status.code(), 1) << command;
    EXPECT_THAT(asked.err,
                AllOf(HasSubstr("are free on its disk"), HasSubstr("\nhint: free some space, or lower --min-free")))
        << command;
    EXPECT_THAT(dumps(), IsEmpty()) << command;
    ::kill(kept.process().pid(), SIGINT);
    EXPECT_THAT(kept.process().wait().err, HasSubstr("--min-free")) << command;
  }
}

TEST_F(FlightLive, ALongPauseMakesOneDump) {
  covers("recording", "a dump of a long pause equals a recording of the time");
  std::ofstream(dir / "hook") << "#!/bin/sh\necho \"$1 $RTEV_TRIGGER $RTEV_PID $RTEV_VALUE\" >> "
                              << (dir / "hooked").string() << '\n';
  fs::permissions(dir / "hook", fs::perms::owner_all);
  Process program(with_events("long_pause", {"0.2"}), "ready");
  const std::string pid = std::to_string(program.pid()), whole_path = dir / "whole.fxt";
  Tracer whole({"-o", whole_path, "-p", pid}, {.format = {"record"}});
  Tracer kept(
      with_dumps({"--keep", "500ms", "--on", "pause>100ms", "--after", "300ms", "-p", pid, "--exec", dir / "hook"}),
      recorder());
  work_until_dump(program);
  for (int i = 0; i < 4; ++i) program.go_until("paused");  // trouble that goes on
  const Outcome ended = kept.interrupt();
  whole.interrupt();
  EXPECT_THAT(ended.err, HasSubstr("pause>100ms of long_pause/" + pid));
  EXPECT_THAT(ended.err, HasSubstr("wrote 1 dump to"));
  EXPECT_THAT(ended.err, HasSubstr("repeated"));
  ASSERT_THAT(dumps(), SizeIs(1));
  const std::string path = dumps().front();
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0600));
  EXPECT_THAT(read_file(dir / "hooked"), HasSubstr(path + " pause>100ms " + pid + " "));

  // Its events are those of the recording of the same time; words are balanced (Trace::parse).
  const Trace dump = dumped(path), all = dumped(whole_path);
  const std::uint64_t from_ns = dump.header["start"], to_ns = dump.summary["end"];
  const Strings events = events_between(dump, program.pid(), from_ns, to_ns);
  EXPECT_THAT(events, Not(IsEmpty()));
  EXPECT_EQ(events, events_between(all, program.pid(), from_ns, to_ns));

  // All reports read it, and say the same.
  const auto within = [&](const Json& pauses) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
    for (const Json& pause : pauses["pauses"]) {
      const std::uint64_t begin = pause["begin_ns"], ns = pause["duration_ns"];
      if (begin + ns >= from_ns && begin + ns < to_ns) found.emplace_back(begin, ns);
    }
    std::ranges::sort(found);
    return found;
  };
  const Json pauses = report({"pauses", "--top", "1000", "-i", path});
  EXPECT_EQ(within(pauses), within(report({"pauses", "--top", "1000", "-i", whole_path})));
  EXPECT_GE(pauses["pauses"][0]["duration_ns"], 200'000'000);
  for (const char* const command : {"latency", "stats", "stalls", "summary"})
    EXPECT_THAT(reports({command, "-i", path}), Not(IsEmpty())) << command;
  convert(path, dir / "dump.pftrace");
}

TEST_F(FlightLive, WhatBeganBeforeIsWhole) {
  Process program(with_events("long_pause", {"2"}), "ready");
  const std::string pid = std::to_string(program.pid());
  Tracer kept(with_dumps({"--keep", "200ms", "--on", "span:req*>1500ms", "--after", "1s", "-p", pid}), recorder());
  program.go();
  // It does not wait for the end of the span.
  until([&] { return !dumps().empty(); });
  program.lines_until("paused");
  kept.interrupt();
  ASSERT_THAT(dumps(), SizeIs(1));
  const Trace dump = dumped(dumps().front());
  Json begin, end;
  for (const Json& event : dump.of(program.pid(), "user")) (event["kind"] == "begin" ? begin : end) = event;
  ASSERT_TRUE(begin.is_object() && end.is_object());
  EXPECT_EQ(begin["name"], "request");
  EXPECT_LT(begin["ts"], dump.header["start"]);
  EXPECT_GE(end["ts"].get<std::uint64_t>() - begin["ts"].get<std::uint64_t>(), 2'000'000'000u);
  const Json pauses = report({"pauses", "-i", dumps().front()});
  EXPECT_GE(pauses["pauses"][0]["duration_ns"], 2'000'000'000u);
  // Time before does not count as time that was seen.
  const Json stats = report({"stats", "-i", dumps().front()});
  EXPECT_LE(stats["processes"][0]["wall_ns"],
            dump.summary["end"].get<std::uint64_t>() - dump.header["start"].get<std::uint64_t>());
}

TEST_F(FlightLive, DumpsAreMadeAtWill) {
  Process program(with_events("busy_alloc"), "ready");
  EXPECT_EQ(snap().status.code(), 1);
  Tracer kept(with_dumps({"--keep", "10s", "-p", std::to_string(program.pid())}), recorder());
  program.go_until("done");
  const Outcome asked = snap();
  EXPECT_EQ(asked.status.code(), 0) << asked.err;
  ASSERT_THAT(dumps(), SizeIs(1));
  EXPECT_EQ(asked.out, dumps().front() + "\n");
  EXPECT_THAT(dumped(dumps().front()).from_rings(program.pid()), Not(IsEmpty()));
  kept.process().signal(SIGUSR2);
  until([&] { return dumps().size() == 2; });
  EXPECT_THAT(kept.interrupt().err, HasSubstr("wrote 2 dumps to"));
  EXPECT_TRUE(fs::is_empty(dir / "run/recorders"));
}

TEST_F(FlightLive, AKilledRecorderLeavesAPartialFileOnly) {
  Process program(with_events("long_pause", {"0.2"}), "ready");
  const std::string pid = std::to_string(program.pid());
  const Strings arguments = with_dumps({"--keep", "100ms", "--on", "pause>100ms", "--after", "60s", "-p", pid});
  {
    Tracer killed(arguments, recorder());
    until([&] {
      program.go_until("paused");
      return !files(".partial").empty();
    });
    killed.process().signal(SIGKILL);
    killed.process().wait();
  }
  EXPECT_THAT(dumps(), IsEmpty());
  EXPECT_THAT(files(".partial"), SizeIs(1));
  Tracer next(with_dumps({"--keep", "100ms", "-p", pid}), recorder());
  EXPECT_THAT(files(".partial"), IsEmpty());
  EXPECT_EQ(snap().status.code(), 0);  // the socket of the killed one is gone
  next.interrupt();
}

TEST_F(FlightLive, LostWordsMakeADump) {
  covers("recording", "a dump when words are lost");
  Process program(with_events("bursts", {"400000"}), "ready");
  Tracer kept(with_dumps({"--keep", "100ms", "--on", "lost", "--after", "200ms", "-p", std::to_string(program.pid())}),
              recorder());
  until([&] {
    kept.process().stop();  // its host stalls
    program.go_until("done");
    kept.process().resume();
    return !dumps().empty();
  });
  kept.interrupt();
  for (const std::string& path : dumps()) {
    const Trace dump = dumped(path);
    EXPECT_GT(dump.lost_words(program.pid()), 0u);
    // Words count when they are read: their events may be those of the next moments.
    EXPECT_GT(dump.words(program.pid())["lost"], 0u);
  }
}

TEST_F(FlightLive, ABusyHostMakesADump) {
  covers("recording", "a dump when threads wait for a CPU");
  Command command = with_events("long_pause", {"0.01"});
  command.argv.insert(command.argv.begin(), {"nice", "-n", "19"});
  Process program(command, "ready");
  const std::string pid = std::to_string(program.pid());
  Tracer kept(with_dumps({"--keep", "100ms", "--on", "sched-delay>4ms", "--after", "100ms", "-p", pid}), recorder());
  occupy_cpus();
  work_until_dump(program);
  EXPECT_THAT(kept.interrupt().err, HasSubstr("sched-delay>4ms of long_pause/" + pid));
  EXPECT_TRUE(report({"latency", "-i", dumps().front()}).is_object());
}

}  // namespace
}  // namespace rtev::test
