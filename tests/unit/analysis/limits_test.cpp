// SPDX-License-Identifier: MIT
#include "analysis/limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "unit/stream/world.hpp"

namespace rtev {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::uint64_t start = 1'000'000, ms = 1'000'000;

class Nothing final : public Sink {
 public:
  void header(const RunHeader&) override {}
  void consume(const Batch&, const Registry&) override {}
  void flush() override {}
  void summary(const RunSummary&, const Registry&) override {}
};

class LimitsTest : public testing::Test {
 protected:
  LimitsTest() {
    world.registry.process(world.process).name = "serv\n";
    world.registry.process(world.process).ring = RingState::active;
  }

  /// What fails by these pauses of one domain, each after 10 ms.
  std::vector<std::string> failures(const std::vector<std::string_view>& texts,
                                    const std::vector<std::uint64_t>& pauses_ms) {
    std::vector<Limit> limits;
    for (const std::string_view text : texts) limits.push_back(parse_limit(text).value());
    Nothing nothing;
    LimitCheck check(nothing, limits);
    check.header({.start_ns = start});
    std::uint64_t now = start;
    const auto add = [&](EventKind kind) {
      check.consume(test::Events{world.slot}.add(now, kind, test::phase_major).batch(), world.registry);
    };
    for (const std::uint64_t pause : pauses_ms) {
      now += 10 * ms;
      add(EventKind::begin);
      now += pause * ms;
      add(EventKind::end);
    }
    check.summary({.start_ns = start, .end_ns = now}, world.registry);
    return check.failures();
  }

  test::World world;
};

TEST(Limits, AreAFigureAndWhatItMustNotExceed) {
  const auto limit = parse_limit("p99.9>1.5ms");
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->figure, Limit::Figure::percentile);
  EXPECT_DOUBLE_EQ(limit->percentile, 99.9);
  EXPECT_DOUBLE_EQ(limit->most, 1.5e6);
  EXPECT_DOUBLE_EQ(parse_limit("gc-share>20%").value().most, 0.2);
  for (const char* const text : {"max>1us", "mean>3s", "p0>1ns", "p100>1h", " max>1s"})
    EXPECT_TRUE(parse_limit(text)) << text;
  for (const char* const text : {"", ">", "p99", "p99<5ms", "p99>", "p101>5ms", "p>5ms", "max>5%", "gc-share>5ms",
                                 "count>5", "max>0", "p99>=5ms"})
    EXPECT_FALSE(parse_limit(text)) << text;
}

TEST(Limits, MayHaveBlanks) {
  const auto limit = parse_limit("p99 > 5 ms");
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->text, "p99>5ms");
  EXPECT_DOUBLE_EQ(limit->most, 5e6);
  EXPECT_DOUBLE_EQ(parse_limit("gc-share > 20 %").value().most, 0.2);
}

TEST(Limits, OfTimeHaveAUnit) {
  for (const char* const text : {"p99>5", "max>0.5", "mean > 5", "max>5 "}) EXPECT_FALSE(parse_limit(text)) << text;
}

TEST_F(LimitsTest, NameWhatExceedsThem) {
  EXPECT_THAT(failures({"max>20ms", "p50>1.1ms", "mean>10ms", "gc-share>99%"}, {1, 1, 30}),
              ElementsAre("max of the pauses of serv\\x0A/4242 is 30.0ms, more than 20.0ms",
                          "mean of the pauses of serv\\x0A/4242 is 10.7ms, more than 10.0ms"));
}

TEST_F(LimitsTest, MayBeAboutOtherDurations) {
  Nothing nothing;
  Histogram stalls;
  stalls.record(300 * ms);
  LimitCheck check(nothing, {parse_limit("max>200ms").value(), parse_limit("max>300ms").value()}, [&] {
    return LimitedDurations{.all = {{.what = "stalls", .comm = "a\n", .pid = 1, .durations = &stalls},
                                    {.what = "stalls", .comm = "b", .pid = 2, .durations = &stalls}}};
  });
  check.header({.start_ns = start});
  check.consume(test::Events{world.slot}.add("2000000 >major 999000000 <major").batch(), world.registry);
  check.summary({.start_ns = start, .end_ns = 1'000'000'000}, world.registry);
  EXPECT_THAT(check.failures(),
              ElementsAre("max of the stalls of a\\x0A/1 is 300ms, more than 200ms; another one exceeds it, too"));
}

TEST_F(LimitsTest, MayBeReached) {
  EXPECT_THAT(failures({"max>30ms", "gc-share>50%"}, {30}), ElementsAre(HasSubstr("gc-share of ")));
}

TEST_F(LimitsTest, AreNotMetByNothing) {
  EXPECT_THAT(failures({"max>1h", "p99>1h", "mean>1h"}, {}), Each(EndsWith("': no pause ended")));
  EXPECT_THAT(failures({"gc-share>99%"}, {}), ElementsAre(StartsWith("nothing was measured for 'gc-share>99%': ")));
}

TEST_F(LimitsTest, ApplyToProcessesBeyondThoseThatAreToldApart) {
  Nothing nothing;
  LimitCheck check(nothing, {parse_limit("max>20ms").value()});
  check.header({.start_ns = start});
  for (std::size_t i = 0; i <= LimitCheck::max_processes; ++i) {
    const std::uint32_t slot = world.add_ring(world.registry.add_process(test::World::default_info()));
    const std::uint64_t end = start + (i < LimitCheck::max_processes ? 1 : 30) * ms;
    check.consume(test::Events{slot}
                      .add(start, EventKind::begin, test::phase_major)
                      .add(end, EventKind::end, test::phase_major)
                      .batch(),
                  world.registry);
  }
  check.summary({.start_ns = start, .end_ns = start + 100 * ms}, world.registry);
  EXPECT_EQ(check.checked_together(), 1u);
  EXPECT_THAT(check.failures(), ElementsAre("max of the pauses of other processes is 30.0ms, more than 20.0ms"));
}

TEST_F(LimitsTest, OfTooFewDurationsForAPercentileTheLongestIsCompared) {
  std::vector<std::uint64_t> pauses(99, 1);
  pauses[50] = 30;
  EXPECT_THAT(failures({"p99>20ms", "p98>20ms"}, pauses),
              ElementsAre("the longest (there are too few for p99) of the pauses of serv\\x0A/4242 is 30.0ms, more "
                          "than 20.0ms"));
  pauses.push_back(1);
  EXPECT_THAT(failures({"p99>20ms"}, pauses), IsEmpty());
}

TEST_F(LimitsTest, FailWithoutAProgramThatIsRead) {
  const auto nothing_for = [](const std::string& limit) {
    return "nothing was measured for '" + limit + "': no program with runtime events was seen";
  };
  ProcessInfo& process = world.registry.process(world.process);
  for (const RingState state : {RingState::none, RingState::unreadable, RingState::paused}) {
    process.ring = state;
    EXPECT_THAT(failures({"max>1ns", "gc-share>0%"}, {}),
                ElementsAre(nothing_for("max>1ns"), nothing_for("gc-share>0%")))
        << to_string(state);
  }
  process.ring = RingState::ended;
  process.missed.gone = 1;
  EXPECT_THAT(failures({"max>1ns"}, {}), ElementsAre(nothing_for("max>1ns")));
  process.words.events = 1;
  EXPECT_THAT(failures({"max>1ns"}, {}), ElementsAre("nothing was measured for 'max>1ns': no pause ended"));
}

TEST_F(LimitsTest, FailWithoutOtherDurations) {
  Nothing nothing;
  LimitCheck check(nothing, {parse_limit("max>200ms").value(), parse_limit("gc-share>50%").value()},
                   [] { return LimitedDurations{.why_none = "no such span ended"}; });
  check.header({.start_ns = start});
  check.summary({.start_ns = start, .end_ns = 1'000'000'000}, world.registry);
  EXPECT_THAT(check.failures(), ElementsAre("nothing was measured for 'max>200ms': no such span ended",
                                            StartsWith("nothing was measured for 'gc-share>50%': of no domain")));
}

}  // namespace
}  // namespace rtev
