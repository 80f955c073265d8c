// SPDX-License-Identifier: MIT
#include "analysis/pauses/worst_pauses.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace rtev {
namespace {

/// A pause that spent its time in one section.
PauseDetails pause_in(std::uint64_t section, std::uint16_t domain, std::uint64_t begin_ns, std::uint64_t ns) {
  PauseDetails pause;
  pause.domain.process = 1;
  pause.domain.domain = domain;
  pause.begin_ns = begin_ns;
  pause.end_ns = begin_ns + ns;
  auto of = std::make_shared<StwSection>();
  of->id = section;
  of->domains.push_back({.domain = domain});
  pause.sections.push_back({.section = std::move(of), .time_ns = ns});
  return pause;
}

TEST(WorstPauses, APauseThatALongerOneShowsIsFolded) {
  WorstPauses worst(2);
  worst.add(pause_in(1, 0, 1'000, 500));
  worst.add(pause_in(1, 1, 1'000, 400));
  worst.add(pause_in(2, 0, 5'000, 300));
  ASSERT_EQ(worst.worst().size(), 2U);
  EXPECT_EQ(worst.worst()[0]->duration_ns(), 500U);
  EXPECT_EQ(worst.worst()[1]->duration_ns(), 300U);
}

TEST(WorstPauses, FoldedOnesAreBoundedAndWhoShowsForgottenOnesStaysListed) {
  constexpr std::size_t top = 2, domains = 4'000;
  WorstPauses worst(top);
  worst.add(pause_in(1, 0, 1'000, 100'000));
  for (std::size_t i = 1; i <= domains; ++i)
    worst.add(pause_in(1, static_cast<std::uint16_t>(i), 1'000 + i, 90'000 - i));
  EXPECT_LE(worst.kept(), (2 * top + 16) * 5 + 1) << "whatever is shown by others";
  ASSERT_EQ(worst.worst().size(), 1U);
  EXPECT_EQ(worst.worst()[0]->domain.domain, 0);
  // A longer pause of the same section would show the one that has shown those that are forgotten: both are told.
  worst.add(pause_in(1, 9, 500, 200'000));
  ASSERT_EQ(worst.worst().size(), 2U);
  EXPECT_EQ(worst.worst()[0]->duration_ns(), 200'000U);
  EXPECT_EQ(worst.worst()[1]->duration_ns(), 100'000U);
}

TEST(WorstPauses, TheLongestAreKeptWhateverTheOrder) {
  WorstPauses worst(3);
  for (std::uint64_t i = 0; i < 2'000; ++i) {
    const std::uint64_t ns = 1 + i * 7'919 % 2'000;
    if (worst.wants(ns)) worst.add(pause_in(i + 1, 0, 10'000 * i, ns));
  }
  ASSERT_EQ(worst.worst().size(), 3U);
  EXPECT_EQ(worst.worst()[0]->duration_ns(), 2'000U);
  EXPECT_EQ(worst.worst()[1]->duration_ns(), 1'999U);
  EXPECT_EQ(worst.worst()[2]->duration_ns(), 1'998U);
}

}  // namespace
}  // namespace rtev
