// SPDX-License-Identifier: MIT
#include "formats/text/text_sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <sstream>

#include "formats/output/output.hpp"
#include "unit/stream/world.hpp"

namespace rtev {
namespace {

using test::Events;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t second = 1'000'000'000, start = 100 * second;
constexpr std::size_t event_column = 14 + 1 + 7 + 1 + 15 + 1 + 3 + 2;

class Text : public testing::Test {
 protected:
  void SetUp() override {
    sink_.header({.version = "1", .host = "h", .kernel = "k", .command_line = {}, .start_ns = start});
    sink_.flush();
    seen_ = output_.text().size();
  }
  std::vector<std::string> lines_of(const Events& events) {
    sink_.consume(events.batch(), world_.registry);
    sink_.flush();
    std::istringstream stream{output_.text().substr(seen_)};
    seen_ = output_.text().size();
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  /// Only what stands right of the columns.
  std::vector<std::string> events_of(const Events& events) {
    auto lines = lines_of(events);
    for (std::string& line : lines) line = line.substr(event_column);
    return lines;
  }
  std::string process_line(ProcessAction action, std::int64_t detail = 0, std::int32_t peer = 0) {
    return events_of(events().add_record(start, EventKind::process, ProcessRecord{world_.process, peer, detail},
                                         static_cast<std::uint16_t>(action)))
        .at(0);
  }
  Events events() const { return Events{world_.slot}; }

  test::World world_;
  StringOutput output_;
  TextSink sink_{output_};
  std::size_t seen_ = 0;
};

TEST_F(Text, HeaderNamesTheColumnsAboveThem) {
  std::istringstream stream{output_.text()};
  std::string about, columns;
  std::getline(stream, about);
  std::getline(stream, columns);
  EXPECT_THAT(about, testing::StartsWith("# rtev-bpf 1 on h, Linux k, time 0 = "));
  EXPECT_EQ(columns, "#         TIME     PID COMM            DOM  EVENT");
  EXPECT_EQ(columns.find("EVENT"), event_column);
}

TEST_F(Text, ColumnsAreAligned) {
  EXPECT_THAT(lines_of(events()
                           .add(start + 1'000'000'007, EventKind::begin, test::phase_minor, 0, 12)
                           .add(start - 5, EventKind::counter, 0, 1)),
              ElementsAre("   1.000000007    4242 server           12  > minor",
                          "  -0.000000005    4242 server            0  force_minor_alloc_small = 1"));
}

TEST_F(Text, SpansAreIndentedAndMeasured) {
  EXPECT_THAT(events_of(events()
                            .add("0 >major 10 >minor", start)
                            .add(start + 20, EventKind::counter, test::counter_minor_allocated, 262'136)
                            .add("1244 <minor 2500000 <major 2500001 <major", start)),
              ElementsAre("> major", "  > minor", "    minor_allocated = 262,136 bytes", "  < minor  1.23µs",
                          "< major  2.50ms", "< major"));
}

TEST_F(Text, NestingIsPerDomain) {
  EXPECT_THAT(events_of(events().add("0 >major 1 >minor@1 5 <minor@1", start)),
              ElementsAre("> major", "> minor", "< minor  4ns"));
}

TEST_F(Text, IndentationIsCapped) {
  auto deep = events();
  for (std::uint64_t i = 0; i < 30; ++i) deep.add(start + i, EventKind::begin, test::phase_minor);
  EXPECT_EQ(events_of(deep).back(), std::string(40, ' ') + "> minor");
}

TEST_F(Text, ALossEndsTheSpansOfItsDomain) {
  EXPECT_THAT(events_of(events()
                            .add("0 >major 1 >major@1", start)
                            .add_record(start + 1'300'000'000, EventKind::lost,
                                        Loss{12'345, start + 1'200'000'000, start + 1'300'000'000}, 0, 0)
                            .add("1300000001 <major 1300000001 <major@1", start)),
              ElementsAre("> major", "> major", "LOST 12,345 words between 1.200000000s and 1.300000000s  (100ms)",
                          "< major", "< major  1.30s"));
  EXPECT_THAT(events_of(events().add_record(start + 5, EventKind::lost, Loss{1, 0, start + 5})),
              ElementsAre("LOST 1 word before 0.000000005s"));
}

TEST_F(Text, DroppedSchedulerEventsAreNobodys) {
  const auto dropped = [](std::uint64_t records) {
    return test::Events(0).add_record(start + 1'000, EventKind::lost, Loss{records, start + 1'000, start + 2'500},
                                      static_cast<std::uint16_t>(LossReason::dropped), first_sched_stream);
  };
  EXPECT_THAT(events_of(dropped(1'234)),
              ElementsAre("LOST 1,234 scheduler events between 0.000001000s and 0.000002500s  (1.50µs)"));
  EXPECT_THAT(events_of(dropped(1)),
              ElementsAre("LOST 1 scheduler event between 0.000001000s and 0.000002500s  (1.50µs)"));
}

TEST_F(Text, ANewDomainInAUsedRingStartsAtTheLeft) {
  EXPECT_THAT(
      events_of(events().add("0 !domain_spawn 1 >domain_condition_wait 2 !domain_spawn 3 <domain_condition_wait "
                             "4 >major 5 !domain_terminate 6 >minor",
                             start)),
      ElementsAre("domain_spawn", "> domain_condition_wait", "domain_spawn", "< domain_condition_wait", "> major",
                  "  domain_terminate", "> minor"));
}

TEST_F(Text, ASpanThatBeginsBeforeTheSpawnEventOfItsDomainIsMeasured) {
  EXPECT_THAT(events_of(events().add("0 >minor 1 !domain_spawn 2 <minor", start)),
              ElementsAre("> minor", "  domain_spawn", "< minor  2ns"));
}

TEST_F(Text, ASpanThatEndsBeforeItBeganHasNoDuration) {
  EXPECT_THAT(events_of(events().add("10 >minor 9 <minor", start)), ElementsAre("> minor", "< minor"));
}

TEST_F(Text, ARingThatStartsAnewForgetsAllItsDomains) {
  EXPECT_THAT(events_of(events().add("0 >minor@1 1 !ring_start 2 <minor@1", start)),
              ElementsAre("> minor", "ring_start", "< minor"));
}

TEST_F(Text, AnEndedProcessLeavesNoSpansBehind) {
  lines_of(events().add(start, EventKind::begin, test::phase_minor));
  process_line(ProcessAction::exit);
  EXPECT_THAT(events_of(events().add(start + 2, EventKind::end, test::phase_minor)), ElementsAre("< minor"));
}

TEST_F(Text, ASlotThatIsUsedAgainStartsAtTheLeft) {
  lines_of(events().add(start, EventKind::begin, test::phase_minor));
  test::World other;  // another process, to which the same sink sees the same slot number belong
  other.registry.add_process({});
  const ProcessIndex next = other.registry.add_process(test::World::default_info());
  const std::uint32_t slot = other.add_ring(next);
  sink_.consume(Events{slot}.add(start + 5, EventKind::end, test::phase_minor).batch(), other.registry);
  EXPECT_THAT(events_of(events().add(start + 9, EventKind::end, test::phase_minor)),
              ElementsAre("< minor", "< minor  9ns"));
}

TEST_F(Text, Lifecycle) {
  EXPECT_THAT(events_of(events()
                            .add(start, Lifecycle::fork_parent, 77)
                            .add(start, Lifecycle::domain_spawn, 4242)
                            .add("0 !ring_stop", start)
                            .add(start, EventKind::lifecycle, 99, 3)),
              ElementsAre("fork_parent  child 77", "domain_spawn  pid 4242", "ring_stop", "#99 3"));
}

TEST_F(Text, UnknownIdsAreNumbers) {
  EXPECT_THAT(events_of(events()
                            .add("0 >#4000 0 <#4000", start)
                            .add(start, EventKind::counter, 999, UINT64_MAX)
                            .add(start, EventKind::user_unit, 17)),
              ElementsAre("> #4000", "< #4000  0ns", "#999 = 18,446,744,073,709,551,615", "#17 unit"));
}

TEST_F(Text, UserEventsOfEveryKind) {
  world_.user_names = {{3, "re\"quest"}};
  EXPECT_THAT(events_of(events()
                            .add(start, EventKind::user_unit, 3)
                            .add(start, EventKind::user_int, 3, static_cast<std::uint64_t>(-42))
                            .add(start, EventKind::user_begin, 3)
                            .add(start, EventKind::begin, 3)
                            .add(start + 7, EventKind::user_end, 3)
                            .add_bytes(start, EventKind::user_custom, "caf\xC3\xA9", 3)
                            .add_bytes(start, EventKind::user_custom, std::string_view{"\x00\x1b", 2}, 3)
                            .add_bytes(start, EventKind::user_custom, "", 3)),
              ElementsAre(R"("re\"quest" unit)", R"("re\"quest" int = -42)", R"(> "re\"quest")",
                          "  > explicit_gc_major", R"(< "re\"quest"  7ns)", "\"re\\\"quest\" custom \"caf\xC3\xA9\"",
                          R"("re\"quest" custom 0x001b)", R"("re\"quest" custom "")"));
}

TEST_F(Text, LongCustomPayloadsAreCutBetweenCharacters) {
  const std::string ascii(1000, 'x');
  std::string accents = "x";
  for (int i = 0; i < 100; ++i) accents += "\xC3\xA9";
  const auto lines =
      events_of(events()
                    .add_bytes(start, EventKind::user_custom, ascii)
                    .add_bytes(start, EventKind::user_custom, accents)
                    .add_bytes(start, EventKind::user_custom, std::string(1024, '\0'))
                    .add_bytes(start, EventKind::user_custom, std::string("\x05\0\0\0\0\0\0\0", 8))
                    .add_bytes(start, EventKind::user_custom, "\x01" + std::string(7, '\0') + std::string(8, '\xff')));
  EXPECT_EQ(lines.at(0), "#0 custom \"" + std::string(64, 'x') + "\"... (1,000 bytes)");
  EXPECT_EQ(lines.at(1), "#0 custom \"" + accents.substr(0, 63) + "\"... (201 bytes)");
  EXPECT_EQ(lines.at(2), "#0 custom 0x" + std::string(64, '0') + "... (1,024 bytes)");
  EXPECT_EQ(lines.at(3), "#0 custom 5");
  EXPECT_EQ(lines.at(4), "#0 custom 1 -1");
}

TEST_F(Text, PayloadsOfKnownLibrariesAreFields) {
  world_.user_names = {{3, "eio.name"}};
  EXPECT_THAT(events_of(events()
                            .add_bytes(start, EventKind::user_custom, std::string("\x05\0\0\0\0\0\0\0main", 12), 3)
                            .add_bytes(start, EventKind::user_custom, "short", 3)),
              ElementsAre(R"("eio.name" id=5 name="main")", R"("eio.name" custom "short")"));
}

TEST_F(Text, AllocShowsTheBucketsInUse) {
  std::array<std::uint64_t, alloc_bucket_count> buckets{};
  buckets[2] = 1'234;
  buckets[10] = 5;
  buckets[18] = 6;
  buckets[19] = 7;
  EXPECT_THAT(events_of(events().add_record(start, EventKind::alloc, buckets)),
              ElementsAre("alloc  2w: 1,234  10-19w: 5  90-99w: 6  100+w: 7"));
}

TEST_F(Text, Processes) {
  EXPECT_EQ(process_line(ProcessAction::found), "process found  OCaml 5.3  /usr/bin/server  (pid 7 in its namespace)");
  ProcessInfo& info = world_.registry.process(world_.process);
  info.ns_pid = info.pid;
  EXPECT_EQ(process_line(ProcessAction::exec), "process exec  OCaml 5.3  /usr/bin/server");
  info.version.clear();
  info.family_source = FamilySource::assumed;
  EXPECT_EQ(process_line(ProcessAction::fork, 0, 12), "process forked by 12  /usr/bin/server");
  EXPECT_EQ(process_line(ProcessAction::ring), "process ring opened  /run/4242.events");
  info.family_source = FamilySource::ring;
  info.version = "5.3";
  EXPECT_EQ(process_line(ProcessAction::ring), "process ring opened  OCaml 5.3  /run/4242.events");
  EXPECT_EQ(process_line(ProcessAction::pause), "process events paused");
  EXPECT_EQ(process_line(ProcessAction::resume), "process events resumed");
  EXPECT_EQ(process_line(ProcessAction::stop), "process ring removed");
  const auto enable = [&](EnableResult result) {
    return process_line(ProcessAction::enable, static_cast<std::int64_t>(result));
  };
  EXPECT_EQ(enable(EnableResult::done), "process enable: events on");
  EXPECT_EQ(enable(EnableResult::not_ocaml), "process enable: not done: it runs no OCaml 5 program");
  EXPECT_EQ(enable(EnableResult::own_pause), "process enable: not done: it paused its events itself");
  EXPECT_EQ(process_line(ProcessAction::enable, -1), "process enable: unknown");
  EXPECT_EQ(process_line(ProcessAction::exit, 0), "process exited with code 0");
  EXPECT_EQ(process_line(ProcessAction::exit, 2 << 8), "process exited with code 2");
  EXPECT_EQ(process_line(ProcessAction::exit, 9), "process killed by signal 9 (KILL)");
  EXPECT_EQ(process_line(ProcessAction::exit, -1), "process ended");
}

TEST_F(Text, ProcessesOfOtherProducers) {
  ProcessInfo& info = world_.registry.process(world_.process);
  info.runtime = "librtev";
  info.ns_pid = info.pid;
  EXPECT_EQ(process_line(ProcessAction::found), "process found  librtev  /usr/bin/server");
  EXPECT_EQ(process_line(ProcessAction::ring), "process ring opened  /run/4242.events  of librtev");
}

TEST_F(Text, SwitchesOfTrackedThreads) {
  SchedSwitch change{.cpu = 1, .state = LeftState::preempted, .prev = {}, .next = {}};
  change.prev = test::make_thread(4242, 4250, "server", true);
  change.prev.domain = 3;
  change.prev.role = ThreadRole::backup;
  change.prev.holds_lock = true;
  change.next = test::make_thread(99, 100, "python3", false);
  EXPECT_THAT(lines_of(Events{0}.add_record(start, EventKind::sched_switch, change)),
              ElementsAre("   0.000000000    4242 server            3  off CPU 1  preempted by python3/100  (lock held)"
                          "  tid 4250  backup thread"));
  std::swap(change.prev, change.next);
  EXPECT_THAT(lines_of(Events{0}.add_record(start, EventKind::sched_switch, change)),
              ElementsAre("   0.000000000    4242 server            3  on CPU 1  tid 4250  backup thread"));
  change.prev = test::make_thread(5, 5, "other", true);
  change.state = LeftState::sleeping;
  EXPECT_THAT(events_of(Events{0}.add_record(start, EventKind::sched_switch, change)),
              ElementsAre("off CPU 1  sleeping", "on CPU 1  tid 4250  backup thread"));
}

TEST_F(Text, SwitchesOfOtherThreadsLeaveOutTheIdleTask) {
  SchedSwitch change{.cpu = 0, .state = LeftState::sleeping, .prev = {}, .next = {}};
  change.prev = test::make_thread(5, 5, "bash", false);
  change.next = test::make_thread(0, 0, "swapper/0", false);
  EXPECT_THAT(events_of(Events{0}.add_record(start, EventKind::sched_switch, change)),
              ElementsAre("off CPU 0  sleeping"));
}

TEST_F(Text, ThreadsSayInWhichCallTheySleepAndForHowLong) {
  const Thread thread = test::make_thread(4242, 4242, "server", true);
  const Thread idle = test::make_thread(0, 0, "swapper/0", false);
  SchedSwitch leaves{.cpu = 1, .state = LeftState::sleeping, .syscall = Syscall::select, .prev = thread, .next = idle};
  const SchedSwitch enters{.cpu = 1, .state = LeftState::preempted, .prev = idle, .next = thread};
  Events events{0};
  events.add_record(start, EventKind::sched_switch, leaves)
      .add_record(start + 10'000'000, EventKind::wakeup, Wakeup{.cpu = 1, .woken = thread, .by = idle})
      .add_record(start + 10'005'000, EventKind::sched_switch, enters);
  leaves.syscall = Syscall::other;
  events.add_record(start + 213'005'000, EventKind::sched_switch, leaves)
      .add_record(start + 213'006'000, EventKind::lost,
                  Loss{.words = 1, .from_ns = start, .to_ns = start + 213'006'000},
                  static_cast<std::uint16_t>(LossReason::dropped), first_sched_stream)
      .add_record(start + 300'000'000, EventKind::sched_switch, enters);
  EXPECT_THAT(events_of(events),
              ElementsAre("off CPU 1  sleeping in select", "woken by swapper/0/0 (CPU 1)  after 10.0ms sleeping",
                          "on CPU 1  after 5.00µs runnable", "off CPU 1  after 203ms  sleeping",
                          testing::HasSubstr("LOST"), "on CPU 1"));
}

TEST_F(Text, Wakeups) {
  Wakeup wakeup{.cpu = 1, .woken = test::make_thread(4242, 4242, "server", true), .by = {}};
  wakeup.by = test::make_thread(120, 123, "bash", false);
  EXPECT_THAT(events_of(Events{0}.add_record(start, EventKind::wakeup, wakeup)),
              ElementsAre("woken by bash/123 (CPU 1)"));
}

TEST_F(Text, SamplesNameTheInnermostFunctionOfOCaml) {
  StackTable& stacks = world_.registry.stacks();
  StackIndex stack = stacks.add_stack(
      0, stacks.add_frame({.kind = FrameKind::ocaml, .line = 7, .function = "Web.serve", .file = "web.ml"}));
  stack = stacks.add_stack(stack, stacks.add_frame({.kind = FrameKind::c, .function = "memcpy", .object = "/libc.so"}));
  const Sample sample{.process = world_.process,
                      .pid = 4242,
                      .tid = 4250,
                      .domain = 0,
                      .cpu = 0,
                      .stack = stack,
                      .weight = 12'000'000,
                      .role = ThreadRole::mutator,
                      .holds_lock = true,
                      .zero = {}};
  Events events{0};
  events.add_record(start, EventKind::sample, sample)
      .add_record(start, EventKind::sample, sample, static_cast<std::uint16_t>(SampleKind::off_cpu))
      .add_record(start, EventKind::sample, sample, static_cast<std::uint16_t>(SampleKind::allocation));
  EXPECT_THAT(events_of(events),
              ElementsAre("runs Web.serve web.ml:7  tid 4250", "slept 12.0ms in Web.serve web.ml:7  tid 4250",
                          "allocates in Web.serve web.ml:7  tid 4250"));
  StringOutput output;
  TextSink all{output, {.all_frames = true}};
  all.consume(Events{0}.add_record(start, EventKind::sample, sample).batch(), world_.registry);
  all.flush();
  EXPECT_THAT(output.text(), testing::EndsWith("runs memcpy (libc.so) < Web.serve web.ml:7  tid 4250\n"));
}

TEST_F(Text, LateEventsAreMarked) {
  EXPECT_THAT(events_of(events().add(start, EventKind::begin, test::phase_minor).late()),
              ElementsAre("> minor  [late]"));
}

TEST_F(Text, EventsOfARingThatIsGoneHaveNoOwner) {
  EXPECT_THAT(lines_of(Events{99}.add(start, EventKind::begin, 11)),
              ElementsAre("   0.000000000                           0  > #11"));
}

/// Everything a program can put into the stream.
Events hostile_events(test::World& world, const std::string& text) {
  ProcessInfo& info = world.registry.process(world.process);
  info.name = info.comm = info.exe = info.version = info.ring_path = text;
  world.user_names = {{3, text}};
  SchedSwitch change{};
  change.prev = test::make_thread(1, 1, text, true);
  change.next = change.prev;
  const ProcessRecord record{world.process, 0, 0};
  Events events{world.slot};
  events.add(start, EventKind::user_unit, 3).add_bytes(start, EventKind::user_custom, text, 3);
  for (const auto action : {ProcessAction::found, ProcessAction::ring, ProcessAction::fork}) {
    events.add_record(start, EventKind::process, record, static_cast<std::uint16_t>(action));
  }
  events.add_record(start, EventKind::sched_switch, change);
  events.add_record(start, EventKind::wakeup, Wakeup{0, change.prev, change.next});
  return events;
}

TEST_F(Text, NoControlCharacterOfAProgramComesThrough) {
  for (const std::string& text : test::hostile_strings()) {
    const auto events = hostile_events(world_, text);
    EXPECT_EQ(lines_of(events).size(), events.batch().events().size() + 1);  // the switch makes two lines
    for (const char c : output_.text()) {
      ASSERT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F));
    }
    ASSERT_EQ(output_.text().find("\xC2\x9B"), std::string::npos);
  }
}

TEST(TextColor, IsOffByDefaultAndAlwaysEndsWithItsLine) {
  test::World world;
  world.user_names = {{3, "x\x1b[2J"}};
  StringOutput output;
  TextSink sink{output, {.color = true}};
  const SchedSwitch change{.cpu = 0, .state = LeftState::dead, .prev = test::make_thread(1, 1, "a", true), .next = {}};
  const auto events = Events{world.slot}
                          .add(start, EventKind::begin, test::phase_minor)
                          .add(start, EventKind::user_unit, 3)
                          .add(start, EventKind::counter, 1)
                          .add_record(start, EventKind::lost, Loss{5, 1, 2})
                          .add_record(start, EventKind::sched_switch, change);
  sink.consume(events.batch(), world.registry);
  sink.flush();
  std::istringstream stream{output.text()};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_THAT(lines[0], Not(HasSubstr("\x1b")));
  for (std::size_t i = 1; i < lines.size(); ++i) EXPECT_THAT(lines[i], testing::EndsWith("\x1b[0m"));
  EXPECT_THAT(lines[1], HasSubstr("\x1b[32m\"x\\x1B[2J\" unit"));
  EXPECT_THAT(lines[3], testing::StartsWith("\x1b[1;31m"));
  EXPECT_THAT(lines[4], testing::StartsWith("\x1b[2m"));
}

TEST(TextSummary, GoesElsewhere) {
  test::World world;
  StringOutput output;
  TextSink sink{output};
  sink.consume(Events{world.slot}.add(1, EventKind::begin, 1).batch(), world.registry);
  sink.summary({}, world.registry);
  EXPECT_THAT(output.text(), testing::EndsWith("> explicit_gc_stat\n"));
}

TEST(TextMin, ShortSpansHaveNoLines) {
  test::World world;
  StringOutput output;
  TextSink sink(output, {.min_ns = 20});
  sink.consume(Events{world.slot}.add("10 >major 12 >minor 31 <minor 35 <major 40 <minor 50 !ring_stop").batch(),
               world.registry);
  sink.flush();
  std::istringstream stream{output.text()};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line.substr(event_column));
  EXPECT_THAT(lines, ElementsAre("< major  25ns"));
}

}  // namespace
}  // namespace rtev
