// SPDX-License-Identifier: MIT
// --in: the samples inside of slow spans and pauses against the others.
#include <gmock/gmock.h>

#include <string>

#include "unit/analysis/profile/profile_fixture.hpp"

namespace rtev::test {
namespace {

using testing::ElementsAre, testing::HasSubstr;

class SlowSamplesTest : public ProfileTest {
 protected:
  SlowSamplesTest() {
    world.user_names = {{1, "request"}, {2, "query"}};
    make({.in = SpanCondition{.pattern = "request", .min_ns = 100}});
  }
  /// Samples inside, elsewhere and undecided.
  std::vector<std::uint64_t> counts() {
    const ProfileReport found = report();
    return {found.all[1].samples, found.all[0].samples, found.undecided};
  }
  const std::vector<std::string> run{"App.run:1"};
};

TEST_F(SlowSamplesTest, ASpanDecidesAtItsEnd) {
  play("1000 [1");
  samples(1010, run, 3);
  play("1099 ]1 2000 [1");
  samples(2010, run, 2);
  play("2100 ]1");
  samples(3000, run, 1);
  EXPECT_THAT(counts(), ElementsAre(2, 4, 0));
}

TEST_F(SlowSamplesTest, TheEndOfTheStreamLeavesShortOpenSpansUndecided) {
  play("999999950 [1");
  samples(999'999'960, run, 3);
  EXPECT_THAT(counts(), ElementsAre(0, 0, 3));
}

TEST_F(SlowSamplesTest, LaterSamplesOfALongSpanAreDecidedAtOnce) {
  make({.in = SpanCondition{.pattern = "request", .min_ns = 100}, .max_waiting = 2});
  play("1000 [1");
  samples(1010, run, 2);
  samples(1200, run, 50);
  EXPECT_THAT(counts(), ElementsAre(52, 0, 0)) << "although the span has no end";
}

TEST_F(SlowSamplesTest, WhatWaitsIsBounded) {
  make({.in = SpanCondition{.pattern = "request", .min_ns = 100}, .max_waiting = 2});
  play("1000 [1");
  samples(1010, run, 5);
  play("1050 ]1");
  EXPECT_THAT(counts(), ElementsAre(0, 2, 3));
}

TEST_F(SlowSamplesTest, ASlowSpanInAShortOneOfTheSameName) {
  play("1000 [1 1010 [1");
  samples(1020, run, 1);
  play("1030 ]1");
  samples(1040, run, 1);
  play("1150 ]1");
  EXPECT_THAT(counts(), ElementsAre(2, 0, 0)) << "both lie in the outer one";
}

TEST_F(SlowSamplesTest, OtherSpansAndDomainsAreElsewhere) {
  play("1000 [2");
  samples(1010, run, 1);
  play("1500 ]2 2000 [1@1");
  samples(2010, run, 1);
  sample(2020, a_sample(stack(run), 1));
  play("2500 ]1@1");
  EXPECT_THAT(counts(), ElementsAre(1, 2, 0));
}

TEST_F(SlowSamplesTest, OfSpansWithoutAnEndTheLengthIsUnknown) {
  play("1000 [1");
  samples(1010, run, 2);
  play("1060 ?");
  samples(1070, run, 1);
  EXPECT_THAT(counts(), ElementsAre(0, 1, 2));
  EXPECT_THAT(profile_text(report()), HasSubstr("2 samples left out"));
}

TEST_F(SlowSamplesTest, AFiberHasItsOwnSamples) {
  world.user_names = {{5, "eio.fiber"}, {6, "eio.enter_span"}, {7, "eio.exit_span"}};
  const auto fiber = [&](std::uint64_t time, std::uint64_t id) {
    feed(Events(world.slot).add(time, EventKind::user_int, 5, id));
  };
  fiber(1000, 1);
  feed(Events(world.slot).add_bytes(1000, EventKind::user_custom, "request", 6));
  samples(1010, run, 1);
  fiber(1020, 2);
  samples(1030, run, 5);
  fiber(1140, 1);
  samples(1150, run, 2);
  feed(Events(world.slot).add(1160, EventKind::user_unit, 7));
  EXPECT_THAT(counts(), ElementsAre(3, 5, 0));
}

TEST_F(SlowSamplesTest, APauseIsOfTheWholeProcess) {
  make({.in = SpanCondition{.pattern = "pause", .min_ns = 100}});
  play("1000 >major");
  sample(1010, a_sample(stack({"Late.compute:3"}), 1));
  samples(1020, {"App.run:1", "wait"}, 1);
  play("1200 <major 2000 >major");
  samples(2010, run, 1);
  play("2020 <major");
  EXPECT_THAT(counts(), ElementsAre(2, 1, 0));
}

TEST_F(SlowSamplesTest, FunctionsThatAreThereMoreThanUsualComeFirst) {
  play("1000 [1");
  samples(1010, {"Web.handle:1", "Digest.string:5", "md5"}, 6);
  samples(1020, {"Web.handle:1", "Json.parse:2"}, 2);
  play("1200 ]1");
  samples(2000, {"Web.handle:1", "Json.parse:2"}, 8);
  samples(2100, {"Web.handle:1", "Digest.string:5", "md5"}, 2);
  const ProfileReport found = report();
  EXPECT_THAT(functions_of(found), ElementsAre("md5 8/8", "Digest.string 0/8", "Web.handle 0/18", "Json.parse 10/10"));
  EXPECT_THAT(profile_text(found),
              HasSubstr("in spans \"request\" of 100ns and longer: only 8 samples, too few for shares: 6 of them in\n"
                        "Digest.string digest.ml:5 (md5), called from"));
}

TEST_F(SlowSamplesTest, WithoutSamplesInsideOtherSpansAreNamed) {
  play("1000 [2");
  samples(1010, run, 1);
  play("1200 ]2");
  EXPECT_THAT(profile_text(report()), HasSubstr("there are spans \"query\""));
}

TEST(SpanCondition, ATimeNeedsAUnit) {
  EXPECT_EQ(parse_span_condition("request"), (SpanCondition{.pattern = "request"}));
  EXPECT_EQ(parse_span_condition("a>b>20ms"), (SpanCondition{.pattern = "a>b", .min_ns = 20'000'000}));
  for (const char* const wrong : {"", ">20ms", "request>", "request>20", "request>x"})
    EXPECT_FALSE(parse_span_condition(wrong)) << wrong;
}

}  // namespace
}  // namespace rtev::test
