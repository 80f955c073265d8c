// SPDX-License-Identifier: MIT
// User spans: which are measured, what their time is spent on, and the reports.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "analysis/spans/spans_sink.hpp"
#include "base/utf8.hpp"
#include "support/files.hpp"
#include "unit/analysis/scheduling.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty, testing::Not, testing::SizeIs, testing::StartsWith;

class SpansTest : public testing::Test {
 protected:
  SpansTest() {
    world.user_names = {{1, "request"}, {2, "query"}, {3, "request-body"}};
    make({.pattern = "request"});
  }
  void make(SpansOptions options) {
    spans.emplace(std::move(options));
    spans->header({.version = "1.2", .start_ns = 1});
  }
  void feed(const Events& events) { spans->consume(events.batch(), world.registry); }
  void play(const std::string& script) { feed(Events(world.slot).add(script)); }
  void switches(std::uint64_t time, const SchedSwitch& change) {
    feed(Events(0).add_record(time, EventKind::sched_switch, change, 0, first_sched_stream));
  }
  static Thread main_thread() { return a_thread(4242, 4242, 0); }
  /// The only group.
  SpanGroup group() {
    const SpansReport report = spans->report();
    EXPECT_THAT(report.groups, SizeIs(1));
    return report.groups.empty() ? SpanGroup{} : report.groups.front();
  }

  World world;
  std::optional<Spans> spans;
};

TEST_F(SpansTest, OnlyThoseWithTheNameAreMeasured) {
  play("100 [1 150 ]1 200 [2 290 ]2 300 [3 310 ]3 400 [1 430 ]1");
  const SpanGroup found = group();
  EXPECT_EQ(found.name, "request");
  EXPECT_EQ(found.pid, 4242);
  EXPECT_EQ(found.wall.count(), 2u);
  EXPECT_EQ(found.wall.total(), 80u);
  EXPECT_THAT(spans->report().other_names, ElementsAre("query", "request-body"));
}

TEST_F(SpansTest, NamesMayHaveWildcards) {
  make({.pattern = "request*"});
  play("100 [1 150 ]1 300 [3 310 ]3");
  EXPECT_THAT(spans->report().groups, SizeIs(2));
}

TEST_F(SpansTest, ShorterOnesAreOnlyCounted) {
  make({.pattern = "request", .min_ns = 40});
  play("100 [1 150 ]1 200 [1 239 ]1");
  EXPECT_EQ(group().wall.count(), 1u);
  EXPECT_EQ(group().below_min, 1u);
}

TEST_F(SpansTest, AnEndBelongsToTheInnermostSpanOfItsName) {
  play("100 [1 110 [2 120 [1 130 ]1 140 ]2 150 ]1");
  EXPECT_EQ(group().wall.total(), 10u + 50u);
  play("200 [1 205 [1@1 290 ]1 300 ]1@1");
  EXPECT_EQ(group().wall.count(), 4u) << "those of other domains are their own";
  EXPECT_EQ(group().wall.max(), 95u);
}

TEST_F(SpansTest, TheirTimeIsSplit) {
  switches(10, enters(main_thread()));
  play("100 [1");
  play("110 >major");
  switches(120, leaves(main_thread(), LeftState::sleeping));
  switches(160, enters(main_thread()));
  play("170 <major");
  switches(180, leaves(main_thread(), LeftState::preempted, 0, competitor()));
  switches(200, enters(main_thread(), 0, competitor()));
  switches(210, leaves(main_thread(), LeftState::sleeping));
  switches(240, enters(main_thread()));
  play("250 ]1");
  const SpanTime time = group().time;
  EXPECT_EQ(time.gc, 20u);
  EXPECT_EQ(time.domains, 40u);
  EXPECT_EQ(time.no_cpu, 20u);
  EXPECT_EQ(time.blocked, 30u);
  EXPECT_EQ(time.code, 40u);
  EXPECT_EQ(time.total(), 150u);
  const Span slowest = group().slowest.at(0);
  EXPECT_EQ(slowest.pauses, 1u);
  EXPECT_EQ(slowest.longest_pause_ns, 60u);
}

TEST_F(SpansTest, WithoutSwitchesTheTimeIsUnknown) {
  play("100 [1 150 ]1");
  EXPECT_EQ(group().time.unknown, 50u);
  EXPECT_THAT(spans->report_text(), HasSubstr("no scheduler events"));
  EXPECT_THAT(spans->report_text(), Not(HasSubstr("NO CPU")));
}

TEST_F(SpansTest, LossesCutSpans) {
  play("100 [1 150 ? 160 ]1 200 [1 210 ]1");
  EXPECT_EQ(group().wall.count(), 1u);
  EXPECT_EQ(group().unfinished, 1u);
  EXPECT_EQ(spans->report().lost.words, 100u);
  EXPECT_THAT(spans->report_text(), HasSubstr("warning: 100 ring words were lost; spans may be missing\n"));
}

TEST_F(SpansTest, HowMuchAGapOfProbesLosesIsUnknown) {
  play("100 [1");
  feed(Events(world.slot)
           .add_record(150, EventKind::lost, Loss{.words = 0, .from_ns = 120, .to_ns = 150},
                       static_cast<std::uint16_t>(LossReason::unprobed)));
  EXPECT_EQ(nlohmann::json::parse(spans->report_json())["lost_words"], nullptr);
  EXPECT_THAT(spans->report_text(), HasSubstr("warning: tracing by probes paused 1 time; spans may be missing\n"));
}

TEST_F(SpansTest, SpansThatAreOpenAtTheEndHaveNoLength) {
  play("100 [1");
  spans->summary({.end_ns = 900}, world.registry);
  EXPECT_EQ(spans->report().end_ns, 900u);
  EXPECT_EQ(group().wall.count(), 0u);
  EXPECT_EQ(group().unfinished, 1u);
}

TEST_F(SpansTest, TheSlowestAreRemembered) {
  std::string script;
  for (std::size_t i = 1; i <= 2 * Spans::max_slowest; ++i)
    script += std::to_string(1000 * i) + " [1 " + std::to_string(1001 * i) + " ]1 ";
  play(script);
  const SpanGroup found = group();
  ASSERT_THAT(found.slowest, SizeIs(Spans::max_slowest));
  EXPECT_EQ(found.slowest.front().length_ns(), 2 * Spans::max_slowest);
  EXPECT_EQ(found.slowest.back().length_ns(), Spans::max_slowest + 1);
}

TEST_F(SpansTest, MemoryIsBounded) {
  std::string script;
  for (std::size_t i = 1; i <= 10 * Spans::max_open; ++i) script += std::to_string(i) + " [1 ";
  play(script + "9000 ]1");
  EXPECT_EQ(group().wall.count(), 1u);
  make({.pattern = "*"});
  for (std::uint16_t id = 0; id < Spans::max_groups + 5; ++id) {
    world.user_names[id] = "name " + std::to_string(id);
    const std::string number = std::to_string(id);
    play("10 [" + number + " 20 ]" + number);
  }
  EXPECT_THAT(spans->report().groups, SizeIs(Spans::max_groups));
  EXPECT_EQ(spans->report().ungrouped, 5u);
}

TEST_F(SpansTest, NoneMatches) {
  play("200 [2 290 ]2 300 [3 310 ]3");
  make({.pattern = "reqest"});
  play("200 [2 290 ]2 300 [3 310 ]3");
  EXPECT_EQ(spans->report_text(), "no span is named \"reqest\"; there are \"query\", \"request-body\"\n");
  make({.pattern = "reqest"});
  EXPECT_THAT(spans->report_text(), StartsWith("no span is named \"reqest\"; no program wrote spans"));
}

/// Eio's events, of domain 0.
class EioSpansTest : public SpansTest {
 protected:
  EioSpansTest() {
    world.user_names = {{5, "eio.fiber"}, {6, "eio.enter_span"}, {7, "eio.exit_span"}, {8, "eio.exit_fiber"}};
  }
  void fiber(std::uint64_t time, std::uint64_t id) { feed(Events(world.slot).add(time, EventKind::user_int, 5, id)); }
  void enter(std::uint64_t time, std::string_view name = "request") {
    feed(Events(world.slot).add_bytes(time, EventKind::user_custom, name, 6));
  }
  void exit(std::uint64_t time) { feed(Events(world.slot).add(time, EventKind::user_unit, 7)); }
  void end_fiber(std::uint64_t time, std::uint64_t id) {
    feed(Events(world.slot).add(time, EventKind::user_int, 8, id));
  }
};

TEST_F(EioSpansTest, AreThoseOfTheCurrentFiber) {
  fiber(90, 1);
  enter(100);
  enter(105, "query");
  fiber(110, 2);
  enter(110);
  fiber(120, 1);
  exit(125);
  exit(130);
  fiber(140, 2);
  exit(150);
  exit(160);
  EXPECT_EQ(group().wall.count(), 2u);
  EXPECT_EQ(group().wall.min(), 30u);
  EXPECT_EQ(group().wall.max(), 40u);
  EXPECT_THAT(spans->report().other_names, ElementsAre("query"));
}

TEST_F(EioSpansTest, AfterALossTheFiberIsUnknown) {
  enter(80);
  fiber(90, 1);
  enter(100);
  play("150 ?");
  exit(160);
  enter(170);
  fiber(180, 1);
  exit(190);
  enter(200);
  exit(210);
  EXPECT_EQ(group().wall.count(), 1u);
  EXPECT_EQ(group().wall.max(), 10u);
  EXPECT_EQ(group().unfinished, 1u);
}

TEST_F(EioSpansTest, EndUnseenWithTheirFiber) {
  fiber(90, 1);
  enter(100);
  fiber(110, 2);
  end_fiber(115, 1);
  fiber(120, 1);
  exit(130);
  EXPECT_EQ(group().unfinished, 1u);
  EXPECT_EQ(group().wall.count(), 0u);
}

TEST_F(EioSpansTest, MemoryIsBounded) {
  for (std::uint64_t i = 0; i < 2 * Spans::max_library_spans; ++i) {
    fiber(i, i);
    enter(i, std::string(2 * LibrarySpans::max_name_bytes, 'x'));
  }
  spans->summary({.end_ns = 100'000}, world.registry);
  EXPECT_EQ(spans->report().other_names.at(0).size(), LibrarySpans::max_name_bytes);
}

/// Events of ocaml-trace: both carry the name of the span.
class TraceSpansTest : public SpansTest {
 protected:
  TraceSpansTest() { world.user_names = {{5, "trace.span.enter"}, {6, "trace.span.exit"}, {7, "request"}}; }
  void enter(std::uint64_t time, std::string_view name = "request", std::uint16_t domain = 0) {
    feed(Events(world.slot).add_bytes(time, EventKind::user_custom, name, 5, domain));
  }
  void exit(std::uint64_t time, std::string_view name = "request", std::uint16_t domain = 0) {
    feed(Events(world.slot).add_bytes(time, EventKind::user_custom, name, 6, domain));
  }
};

TEST_F(TraceSpansTest, ArePairedByTheirNames) {
  enter(100);
  enter(105, "query");
  enter(110);
  exit(115, "query");
  exit(130);
  enter(135, "request", 1);
  exit(150);
  exit(155, "request", 1);
  EXPECT_EQ(group().name, "request");
  EXPECT_EQ(group().wall.count(), 3u);
  EXPECT_EQ(group().wall.total(), 20u + 50u + 20u);
  EXPECT_THAT(spans->report().other_names, ElementsAre("query"));
}

TEST_F(TraceSpansTest, AreOtherSpansThanThoseOfTheProgram) {
  play("100 [7");
  enter(110);
  play("120 ]7");
  exit(150);
  exit(160);
  EXPECT_EQ(group().wall.count(), 2u);
  EXPECT_EQ(group().wall.min(), 20u);
  EXPECT_EQ(group().wall.max(), 40u);
}

TEST_F(TraceSpansTest, LossesCutThem) {
  enter(100);
  play("150 ?");
  exit(160);
  EXPECT_EQ(group().wall.count(), 0u);
  EXPECT_EQ(group().unfinished, 1u);
}

TEST_F(TraceSpansTest, OtherEventsOfTheseNamesAreNoSpans) {
  feed(Events(world.slot).add(100, EventKind::user_unit, 5).add(110, EventKind::user_int, 6, 1));
  EXPECT_THAT(spans->report().groups, IsEmpty());
}

TEST_F(SpansTest, LimitsApplyToThem) {
  play("100 [1 150 ]1 200 [2 290 ]2");
  const auto limited = spans->limited().all;
  ASSERT_THAT(limited, SizeIs(1));
  EXPECT_EQ(limited[0].what, "spans \"request\"");
  EXPECT_EQ(limited[0].durations->max(), 50u);
}

/// Requests, three of which wait for long in a pause.
class SpansReportTest : public SpansTest {
 protected:
  void run(bool with_switches, int short_ones = 300) {
    make({.pattern = "*", .input = "shop.fxt"});
    if (with_switches) switches(10, enters(main_thread()));
    std::uint64_t now = 1'000'000;
    for (int i = 0; i < short_ones; ++i) {
      feed(Events(world.slot).add(now, EventKind::user_begin, 1).add(now + 100'000, EventKind::user_end, 1));
      now += 200'000;
    }
    for (int i = 0; i < 3; ++i) {
      feed(Events(world.slot).add(now, EventKind::user_begin, 1).add(now + 10, EventKind::begin, phase_major));
      if (with_switches) {
        switches(now + 20, leaves(main_thread(), LeftState::sleeping));
        switches(now + 9'000'000, enters(main_thread()));
      }
      feed(Events(world.slot).add(now + 9'000'100, EventKind::end, phase_major));
      feed(Events(world.slot).add(now + 9'900'000, EventKind::user_end, 1));
      now += 10'000'000;
    }
    feed(Events(world.slot).add(now, EventKind::user_begin, 2).add(now + 5'000, EventKind::user_end, 2));
    spans->summary({.end_ns = now + 1'000'000}, world.registry);
  }
  /// That it fits a screen.
  std::string screen() const {
    const std::string text = spans->report_text();
    EXPECT_LE(std::ranges::count(text, '\n'), 22) << text;
    for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
      EXPECT_LE(columns_of(text.substr(begin, text.find('\n', begin) - begin)), 100u) << text;
    return text;
  }
};

TEST_F(SpansReportTest, Text) {
  run(true);
  EXPECT_EQ(screen(), golden("analysis/golden/spans.txt"));
}

TEST_F(SpansReportTest, TextWithoutSchedulerEvents) {
  run(false);
  EXPECT_EQ(screen(), golden("analysis/golden/spans_rootless.txt"));
}

TEST_F(SpansReportTest, Json) {
  run(true, 2);
  EXPECT_EQ(nlohmann::json::parse(spans->report_json()), nlohmann::json::parse(golden("analysis/golden/spans.json")));
}

TEST_F(SpansTest, NamesAreEscaped) {
  for (const std::string& name : hostile_strings()) {
    make({.pattern = "*"});
    world.user_names[1] = world.registry.process(world.process).comm = name;
    play("100 [1 150 ]1");
    for (const char c : spans->report_text()) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ');
    EXPECT_TRUE(nlohmann::json::accept(spans->report_json()));
    EXPECT_EQ(std::ranges::count(spans->report_json(), '\n'), 1);
  }
}

TEST(SpansText, ManyProcessesOfAProgramHaveOneRow) {
  SpansReport report{.end_ns = 1'000'000'000};
  for (std::int32_t pid = 1; pid <= 6; ++pid) {
    SpanGroup& group = report.groups.emplace_back(SpanGroup{.pid = pid, .comm = "worker", .name = "request"});
    group.wall.record(static_cast<std::uint64_t>(pid) * 1000);
    group.slowest.push_back({.begin_ns = 1, .end_ns = 1 + static_cast<std::uint64_t>(pid) * 1000});
  }
  const std::string text = spans_text(report);
  EXPECT_THAT(text, StartsWith("6 spans \"request\" of worker x6 in 1.00s"));
  EXPECT_THAT(text, HasSubstr("6.00µs: request of worker/6 domain 0"));
  EXPECT_THAT(text, Not(HasSubstr("worker/1")));
  report.full = true;
  EXPECT_THAT(spans_text(report), Not(HasSubstr("x6")));
}

}  // namespace
}  // namespace rtev::test
