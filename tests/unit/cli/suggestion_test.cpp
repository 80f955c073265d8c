// SPDX-License-Identifier: MIT
#include "cli/suggestion.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rtev::cli {
namespace {

TEST(Suggestion, DistanceCountsLetters) {
  EXPECT_EQ(typing_distance("", ""), 0u);
  EXPECT_EQ(typing_distance("", "abc"), 3u);
  EXPECT_EQ(typing_distance("stats", "stats"), 0u);
  EXPECT_EQ(typing_distance("latncy", "latency"), 1u) << "one is missing";
  EXPECT_EQ(typing_distance("pausess", "pauses"), 1u) << "one too many";
  EXPECT_EQ(typing_distance("pauzes", "pauses"), 1u) << "a wrong one";
  EXPECT_EQ(typing_distance("pasues", "pauses"), 1u) << "two swapped";
  EXPECT_EQ(typing_distance("stop", "record"), 5u);
}

TEST(Suggestion, IsTheMostSimilarWord) {
  const std::vector<std::string> words{"stats", "stalls", "pauses", "ps"};
  EXPECT_EQ(similar_word("stat", words), "stats");
  EXPECT_EQ(similar_word("pauzses", words), "pauses");
  EXPECT_EQ(similar_word("pd", words), "ps");
  EXPECT_EQ(similar_word("sttas", words), "stats");
  EXPECT_EQ(similar_word("mniro", std::vector<std::string>{"major", "minor"}), "minor");
  EXPECT_EQ(similar_word("server", words), std::nullopt);
  EXPECT_EQ(similar_word("xy", words), std::nullopt);
  EXPECT_EQ(similar_word("ps", {}), std::nullopt);
}

}  // namespace
}  // namespace rtev::cli
