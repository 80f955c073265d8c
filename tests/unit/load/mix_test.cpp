// SPDX-License-Identifier: MIT
#include "load/mix.hpp"

#include <gtest/gtest.h>

namespace rtev::load {
namespace {

TEST(Mix, OnePartAlone) {
  const auto mix = Mix::parse("gc");
  ASSERT_TRUE(mix);
  EXPECT_EQ(mix->weight(Part::gc), 1u);
  for (const Part part : {Part::counters, Part::alloc, Part::user, Part::spans, Part::custom})
    EXPECT_EQ(mix->weight(part), 0u);
  EXPECT_FALSE(mix->has_user_events());
}

TEST(Mix, Weights) {
  const auto mix = Mix::parse("gc=8,counter=2,user,custom=0");
  ASSERT_TRUE(mix);
  EXPECT_EQ(mix->weight(Part::gc), 8u);
  EXPECT_EQ(mix->weight(Part::counters), 2u);
  EXPECT_EQ(mix->weight(Part::user), 1u);
  EXPECT_EQ(mix->weight(Part::custom), 0u);
  EXPECT_TRUE(mix->has_user_events());
}

TEST(Mix, AllHasEveryPart) {
  const auto mix = Mix::parse("all");
  ASSERT_TRUE(mix);
  EXPECT_EQ(*mix, Mix::all());
  for (std::size_t i = 0; i < part_count; ++i) EXPECT_GT(mix->weight(Part{static_cast<std::uint8_t>(i)}), 0u);
  EXPECT_FALSE(Mix::runtime_only().has_user_events());
}

TEST(Mix, RefusesInvalidText) {
  for (const char* text : {"", ",", "gc,", "GC", "gc=", "gc=-1", "gc=1.5", "gc=1001", "gc=99999999999", "gc=1=2",
                           "gc =1", "everything", "gc=0", "gc=0,user=0", "all=2"})
    EXPECT_FALSE(Mix::parse(text)) << text;
}

}  // namespace
}  // namespace rtev::load
