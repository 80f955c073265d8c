// SPDX-License-Identifier: MIT
#include "inspect/runtime_layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace rtev {
namespace {

TEST(RuntimeLayout, IsFoundByTheVersionsFirstTwoNumbers) {
  const auto found = [](std::string_view text) { return find_runtime_layout(OcamlVersion::parse(text).value()); };
  ASSERT_TRUE(found("5.3.1"));
  EXPECT_EQ(found("5.3.1")->version, found("5.3")->version);
  EXPECT_EQ(found("5.3.0+options"), found("5.3"));
  EXPECT_FALSE(found("5.10"));
  EXPECT_FALSE(found("4.14.2"));
}

TEST(RuntimeLayout, EnablingKnowsTheVersionsThatItWasTestedWith) {
  std::vector<std::uint32_t> minors;
  for (const RuntimeLayout& layout : runtime_layouts)
    if (layout.domain()) minors.push_back(layout.version.minor);
  EXPECT_THAT(minors, testing::ElementsAre(1, 3, 4));
  EXPECT_EQ(find_runtime_layout({.major = 5, .minor = 3})->domain()->id, 36U);
}

TEST(RuntimeLayout, NothingIsKnownOfStacksOfTheNewest) {
  EXPECT_EQ(runtime_layouts.back().stacks(), StackLayout{});
}

}  // namespace
}  // namespace rtev
