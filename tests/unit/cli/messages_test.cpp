// SPDX-License-Identifier: MIT
// The messages of a trace, one after the other, as in golden/messages.txt.
#include "cli/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "base/exit_status.hpp"
#include "cli/no_match.hpp"
#include "support/files.hpp"
#include "unit/stream/world.hpp"

namespace rtev::cli {
namespace {

Registry registry_with(std::initializer_list<RingState> rings) {
  Registry registry;
  for (const RingState ring : rings) {
    ProcessInfo info;
    info.ring = ring;
    registry.add_process(std::move(info));
  }
  return registry;
}

TEST(Messages, SayWhatHelpsIfDescriptorsAreShort) {
  const auto reported = [](const Error& error) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(report(error), exit_failure);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(reported(errno_error(EMFILE, "cannot watch", "server").error()),
            "rtev-bpf: cannot watch server: Too many open files\nhint: raise the limit on open files (ulimit -n)\n");
  EXPECT_EQ(reported(errno_error(EMFILE, "cannot watch", "server", "watch less").error()),
            "rtev-bpf: cannot watch server: Too many open files\nhint: watch less\n");
  EXPECT_EQ(reported(errno_error(EIO, "cannot watch", "server").error()),
            "rtev-bpf: cannot watch server: Input/output error\n");
}

TEST(Messages, AreAsInTheGoldenFile) {
  const Registry none, without_ring = registry_with({RingState::none}),
                       several = registry_with({RingState::active, RingState::paused, RingState::probed});
  const std::string hostile = "./\x1b[2Jserver", directory = "/tmp/rtev-bpf.a1b2c3";
  const std::string text =
      start_message(none, {}) + start_message(without_ring, {}) + start_message(none, {.selects = true}) +
      start_message(without_ring, {.has_end = true, .probes_all = true, .found_everything = false}) +
      start_message(several, {.probes_all = true}) + start_message(without_ring, {.enables = true}) +
      missing_probes_message({.binaries = 2, .last_error = Error{.what = "cannot probe", .why = "no memory"}}) +
      missing_probes_message({.functions = 1}) + slow_detach_message(40) + no_events_message(hostile, none) +
      no_events_message("server", without_ring) + aborted_message(1, hostile, directory) +
      aborted_message(2, "server", directory) + aborted_message(1, "server", "") +
      full_rings_message(hostile, directory) + survivors_message({{.pid = 7, .comm = ""}}, hostile, directory) +
      survivors_message({{1, "one"}, {2, "two\n"}, {3, "three"}, {4, "four"}, {5, "five"}, {6, "six"}}, "server",
                        directory);
  EXPECT_EQ(text, test::golden("cli/golden/messages.txt"));
}

TEST(Messages, AreEmptyIfThereIsNothingToSay) {
  EXPECT_EQ(missing_probes_message({}), "");
  EXPECT_EQ(slow_detach_message(2), "");
  EXPECT_EQ(no_events_message("server", registry_with({RingState::none, RingState::ended})), "");
  Registry unusable;
  ProcessInfo program;
  program.missed.gone = 1;
  unusable.add_process(program);
  EXPECT_EQ(no_events_message("server", unusable), "") << "a ring was made: there is a warning of it";
  EXPECT_EQ(aborted_message(0, "server", "/tmp/rtev-bpf.a1b2c3"), "");
  EXPECT_EQ(survivors_message({}, "server", ""), "");
}

TEST(Messages, SayWhatToDoForProgramsWithEventsOff) {
  const std::string hint = "hint: --enable switches events on";
  EXPECT_THAT(start_message(registry_with({RingState::active, RingState::none}), {}), testing::HasSubstr(hint));
  EXPECT_THAT(start_message(registry_with({RingState::active, RingState::none}), {.enables = true}),
              testing::Not(testing::HasSubstr(hint)));
  EXPECT_THAT(start_message(registry_with({RingState::active}), {}), testing::Not(testing::HasSubstr(hint)));
}

TEST(Messages, SayWhatWasInterrupted) {
  EXPECT_EQ(interrupted_message("./\x1b[2Jprog"), "rtev-bpf: interrupted before ./\\x1B[2Jprog was started\n");
  EXPECT_EQ(interrupted_message(""), "rtev-bpf: interrupted before tracing began\n");
}

TEST(Messages, NameWhatAListOfEventsCouldHaveMeant) {
  EXPECT_EQ(mistyped_kind_note(""), "");
  EXPECT_EQ(mistyped_kind_note("user,request,minor*"), "");
  EXPECT_EQ(mistyped_kind_note("request,usr"),
            "rtev-bpf: 'usr' of --events is taken for a name\nhint: did you mean the kind user?\n");
  test::World world;
  world.user_names = {{1, "re\x1bquest"}};
  test::Events events{world.slot};
  events.add(1, EventKind::begin, test::phase_minor).add(2, EventKind::user_unit, 1);
  auto filter = EventFilter::parse("usr,none*");
  ASSERT_TRUE(filter);
  const std::string kinds = "kinds are phase, counter, alloc, lifecycle, user, process, switch, wakeup, sample\n";
  EXPECT_EQ(no_event_message(*filter),
            "rtev-bpf: no event matches 'usr', 'none*': there was none of any kind\nhint: did you mean user?\n");
  for (const Event& event : events.batch().events()) filter->accepts(event, world.registry);
  EXPECT_EQ(no_event_message(*filter),
            "rtev-bpf: no event matches 'usr', 'none*'\nhint: did you mean user? seen: phase minor; user "
            "\"re\\x1Bquest\"\n");
  EXPECT_EQ(no_event_message(EventFilter::parse("minor*").value()),
            "rtev-bpf: no event matches 'minor*': there was none of any kind\n");
  filter = EventFilter::parse("user");
  test::Events lost{world.slot};
  lost.add_record(1, EventKind::lost, Loss{.words = 1, .from_ns = 0, .to_ns = 1});
  filter->accepts(lost.batch().events()[0], world.registry);
  EXPECT_EQ(no_event_message(*filter), "rtev-bpf: no event matches 'user'\nhint: " + kinds);
  world.user_names = {{1, "request"}};
  filter = EventFilter::parse("wakeup,requst,mnior");
  for (const Event& event : events.batch().events()) filter->accepts(event, world.registry);
  EXPECT_EQ(no_event_message(*filter),
            "rtev-bpf: no event matches 'wakeup', 'requst', 'mnior'\n"
            "hint: did you mean 'request', 'minor'? seen: phase minor; user \"request\"\n");
}

TEST(Messages, SayWhichStacksAFormatLeavesOut) {
  EXPECT_EQ(no_stacks_message(0, "chrome"), "");
  EXPECT_THAT(no_stacks_message(2, "chrome"),
              testing::HasSubstr("chrome holds no stacks: 2 stack samples are left out\n"));
}

TEST(Messages, ListFewOfManyEventNames) {
  test::World world;
  test::Events events{world.slot};
  events.add(1, EventKind::user_unit, 1);
  auto filter = EventFilter::parse("requst").value();
  for (const char* const name : {"e", "d", "c", "b", "a", "request"}) {
    world.user_names = {{1, name}};
    filter.accepts(events.batch().events()[0], world.registry);
  }
  EXPECT_THAT(no_event_message(filter),
              testing::HasSubstr("did you mean 'request'? seen: user \"a\", \"b\", \"c\", \"d\", ...\n"));
}

TEST(Messages, NameWhatASelectionCouldHaveMeant) {
  const ProcessOptions typo{.names = {"srever"}}, part{.names = {"serv"}}, pid{.pids = {1}};
  const Processes processes{{"server", 7}, {"server", 8}, {"leaky\n", 9}};
  const Error error = no_match_error(typo, processes, "t.fxt");
  EXPECT_EQ(error.message(), "no process of t.fxt: --name 'srever' matches none");
  EXPECT_EQ(error.hint, "did you mean --name 'server'? its processes: leaky\\x0A, server");
  EXPECT_EQ(no_match_error(part, processes, "t.fxt").hint,
            "did you mean --name 'serv*'? its processes: leaky\\x0A, server");
  EXPECT_EQ(no_match_error(pid, processes, "t.fxt").hint, "its processes: leaky\\x0A/9, server/7, server/8");
  EXPECT_EQ(no_match_error(pid, {}, "t.fxt").hint, "it has no processes");
  EXPECT_EQ(no_match_error({.names = {"8", "srever"}}, processes, "t.fxt").hint,
            "did you mean -p 8? --name selects by name");
  EXPECT_THAT(no_match_error({.names = {"10"}}, processes, "t.fxt").hint, testing::StartsWith("its processes:"));
  EXPECT_EQ(meant_pids({std::to_string(::getpid())}),
            "did you mean -p " + std::to_string(::getpid()) + "? --name selects by name");
  EXPECT_EQ(meant_pids({"0", "server", "-1", "99999999999"}), "");
}

TEST(Messages, OptionsThatMatchNothingAreFoundOneByOne) {
  Registry registry;
  registry.add_process(test::World::default_info());
  const ProcessOptions missing = unmatched({.pids = {4242, 1}, .names = {"leaky", "serv*", "nosuch"}}, registry);
  EXPECT_THAT(missing.pids, testing::ElementsAre(1));
  EXPECT_THAT(missing.names, testing::ElementsAre("leaky", "nosuch"));
}

TEST(Messages, NameDomainsAndThreadsThatAreMissing) {
  test::World world;
  struct : Sink {
    void header(const RunHeader&) override {}
    void consume(const Batch&, const Registry&) override {}
    void flush() override {}
    void summary(const RunSummary&, const Registry&) override {}
  } sink;
  SeenThreads seen(sink, {.domains = {1, 9}, .tids = {77}});
  EXPECT_EQ(no_thread_message(seen),
            "rtev-bpf: warning: no domain 1, no domain 9, no thread 77 in the stream\nhint: it has no events\n");
  seen.consume(test::Events(world.slot).add("1 >minor 2 >minor@1 3 >minor@2").batch(), world.registry);
  EXPECT_EQ(no_thread_message(seen),
            "rtev-bpf: warning: no domain 9, no thread 77 in the stream\n"
            "hint: it has domains 0 to 2; thread 4242\n");
  SeenThreads others(sink, {.domains = {3}});
  others.consume(test::Events(world.slot).add("1 >minor 2 >minor@2").batch(), world.registry);
  EXPECT_EQ(no_thread_message(others), "rtev-bpf: warning: no domain 3 in the stream\nhint: it has domains 0, 2\n");
  SeenThreads there(sink, {.domains = {0}, .tids = {4242}});
  there.consume(test::Events(world.slot).add("1 >minor").batch(), world.registry);
  EXPECT_EQ(no_thread_message(there), "");
}

TEST(Messages, SayWhenARecordingIs) {
  EXPECT_EQ(missed_run_error({.start_ns = 5, .end_ns = 5'000'000'005, .start_realtime_ns = 0}, "t.fxt").message(),
            "nothing to show of t.fxt: it has 0s to 5.00s, none of it in the selected time");
  EXPECT_THAT(missed_run_error({.start_ns = 5, .end_ns = 5'000'000'005, .start_realtime_ns = 1}, "t.fxt").why,
              testing::ContainsRegex("it has [0-9:]+:00.000000 to [0-9:]+:05.000000, 0s to 5.00s"));
}

}  // namespace
}  // namespace rtev::cli
