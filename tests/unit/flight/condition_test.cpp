// SPDX-License-Identifier: MIT
#include "flight/condition.hpp"

#include <gtest/gtest.h>

#include "unit/stream/world.hpp"

namespace rtev::flight {
namespace {

using What = Condition::What;

TEST(FlightCondition, ParsesEachKind) {
  const auto pause = parse_condition("pause>50ms");
  ASSERT_TRUE(pause);
  EXPECT_EQ(pause->what, What::pause);
  EXPECT_EQ(pause->limit, 50e6);
  const auto span = parse_condition("span:http > *>1.5s");
  ASSERT_TRUE(span);
  EXPECT_EQ(span->what, What::span);
  EXPECT_EQ(span->pattern, "http > *");
  EXPECT_EQ(span->limit, 1.5e9);
  EXPECT_EQ(parse_condition("sched-delay>20ms")->limit, 20e6);
  EXPECT_EQ(parse_condition("heap>2G")->limit, 2.0 * (1 << 30));
  const auto share = parse_condition("gc-share>30%/5s");
  ASSERT_TRUE(share);
  EXPECT_EQ(share->limit, 0.3);
  EXPECT_EQ(share->over_ns, 5'000'000'000u);
  EXPECT_EQ(parse_condition("gc-share>30%")->over_ns, 10'000'000'000u);
  EXPECT_EQ(parse_condition("lost")->what, What::lost);
}

TEST(FlightCondition, RefusesOtherTexts) {
  for (const char* const text : {"", "pause", "pause>", "pause>50", "pause<50ms", "pause>-1ms", "span:>1ms",
                                 "span:name", "span:name>5", "heap>0", "heap>x", "gc-share>30", "gc-share>300%",
                                 "gc-share>30%/5", "gc-share>30%/1us", "lost>1", "other>1ms"})
    EXPECT_FALSE(parse_condition(text)) << text;
  for (const std::string& text : test::hostile_strings()) EXPECT_FALSE(parse_condition(text));
}

}  // namespace
}  // namespace rtev::flight
