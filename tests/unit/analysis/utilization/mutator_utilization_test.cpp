// SPDX-License-Identifier: MIT
#include "analysis/utilization/mutator_utilization.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <vector>

namespace rtev {
namespace {

constexpr std::uint64_t ms = 1'000'000, s = 1'000'000'000, from = 5 * s;
const DomainLife here{.process = 1, .pid = 4242, .domain = 0, .incarnation = 1, .source = 7};
const DomainLife there{.process = 1, .pid = 4242, .domain = 3, .incarnation = 2, .source = 8};

const WindowUtilization& window(const MutatorUtilization& of, std::uint64_t length_ns) {
  return *std::ranges::find(of.windows(), length_ns, &WindowUtilization::length_ns);
}

TEST(MutatorUtilization, WithoutPausesAllIsLeft) {
  MutatorUtilization all;
  all.begin_domain(here, from, true);
  all.end_domain(here, from + 100 * ms);
  for (const std::uint64_t length : MutatorUtilization::lengths_ns)
    EXPECT_EQ(window(all, length).is_known(), length < 100 * ms) << length;
  EXPECT_EQ(window(all, ms).least(), 1);
  EXPECT_EQ(window(all, ms).percentile(99), 1);
}

TEST(MutatorUtilization, APauseTakesItsTimeOfEachWindow) {
  MutatorUtilization all;
  all.begin_domain(here, from, true);
  all.add_pause(here, from + 40 * ms, from + 45 * ms);
  all.end_domain(here, from + 1'000 * ms);
  EXPECT_EQ(window(all, ms).least(), 0);
  EXPECT_EQ(window(all, 3 * ms).least(), 0);
  EXPECT_EQ(window(all, 3 * ms).worst_begin_ns(), from + 40 * ms);
  EXPECT_DOUBLE_EQ(window(all, 10 * ms).least(), 0.5);
  EXPECT_DOUBLE_EQ(window(all, 100 * ms).least(), 0.95);
  EXPECT_EQ(window(all, 100 * ms).worst_domain().pid, 4242);
  EXPECT_FALSE(window(all, 3 * s).is_known());
  // Of 990 ms of positions of the window of 10 ms, 5 ms have the whole pause, and 2 × 5 ms less and less of it.
  EXPECT_NEAR(window(all, 10 * ms).percentile(99.9), 0.5, 0.01);
  EXPECT_NEAR(window(all, 10 * ms).percentile(99), 1 - 0.255, 0.01);
  EXPECT_EQ(window(all, 10 * ms).percentile(98), 1);
}

TEST(MutatorUtilization, ShortPausesInLongWindowsAreTold) {
  MutatorUtilization all;
  all.begin_domain(here, from, true);
  for (std::uint64_t at = from; at < from + 30 * s; at += 150 * ms) all.add_pause(here, at + ms, at + 2 * ms);
  all.end_domain(here, from + 30 * s);
  for (const std::uint64_t length : {s, 3 * s, 10 * s}) {
    const double share = window(all, length).percentile(99);
    EXPECT_NEAR(share, 1 - 1.0 / 150, 0.0006) << length;
    EXPECT_GE(share, window(all, length).least());
    EXPECT_LT(share, 1 - 1.0 / 150 + 0.0002) << "it is not said to be greater than it is";
  }
}

TEST(MutatorUtilization, TheWorstWindowIsThatOfTheWorstDomain) {
  MutatorUtilization all;
  for (const DomainLife& domain : {here, there}) all.begin_domain(domain, from, true);
  all.add_pause(here, from + 10 * ms, from + 12 * ms);
  all.add_pause(there, from + 10 * ms, from + 11 * ms);
  // Two pauses in one window.
  all.add_pause(there, from + 15 * ms, from + 18 * ms);
  for (const DomainLife& domain : {here, there}) all.end_domain(domain, from + 60 * ms);
  const WindowUtilization& worst = window(all, 10 * ms);
  EXPECT_DOUBLE_EQ(worst.least(), 0.6);
  EXPECT_EQ(worst.worst_domain().incarnation, there.incarnation);
  EXPECT_GE(worst.worst_begin_ns(), from + 8 * ms);
  EXPECT_LE(worst.worst_begin_ns(), from + 10 * ms);
}

TEST(MutatorUtilization, AnIdleDomainSaysNothingOfBusyOnesThatEndedBefore) {
  MutatorUtilization all;
  DomainLife idle = here;
  idle.source = 99;
  all.begin_domain(idle, from, true);
  all.add_pause(idle, from, from + ms);
  for (std::uint64_t source = 0; source < 3; ++source) {
    DomainLife busy = there;
    busy.source = static_cast<std::uint16_t>(source);
    all.begin_domain(busy, from, true);
    for (std::uint64_t at = from; at < from + 200 * ms; at += 10 * ms) all.add_pause(busy, at + ms, at + 7 * ms);
    all.end_domain(busy, from + 200 * ms);
  }
  const auto now = all.windows_at(from + 20 * s);
  for (const WindowUtilization& each : now) EXPECT_EQ(each.is_known(), each.length_ns() < 200 * ms) << each.length_ns();
  all.add_pause(idle, from + 20 * s, from + 21 * s);
  EXPECT_TRUE(window(all, s).is_known()) << "most of the time in pauses is in its own";
  EXPECT_EQ(window(all, s).least(), 0);
}

TEST(MutatorUtilization, NoWindowSpansALoss) {
  MutatorUtilization all;
  all.begin_domain(here, from, true);
  all.add_pause(here, from + 10 * ms, from + 20 * ms);
  all.lose(here, from + 45 * ms);
  // It is known again from the next pause on.
  all.add_pause(here, from + 80 * ms, from + 81 * ms);
  all.end_domain(here, from + 115 * ms);
  EXPECT_DOUBLE_EQ(window(all, 30 * ms).least(), 2.0 / 3);
  EXPECT_FALSE(window(all, 100 * ms).is_known());
}

TEST(MutatorUtilization, ADomainThatWasThereBeforeCountsFromItsFirstPauseOn) {
  MutatorUtilization all;
  all.begin_domain(here, from, false);
  all.end_domain(here, from + s);
  EXPECT_FALSE(window(all, ms).is_known());
  all.begin_domain(here, from + s, false);
  all.add_pause(here, from + 2 * s, from + 2 * s + ms);
  all.end_domain(here, from + 2 * s + 4 * ms);
  EXPECT_FALSE(window(all, 10 * ms).is_known());
  EXPECT_TRUE(window(all, 3 * ms).is_known());
  EXPECT_DOUBLE_EQ(window(all, 3 * ms).least(), 2.0 / 3);
}

TEST(MutatorUtilization, WhatItIsNowIsWhatItWouldBeAtTheEnd) {
  MutatorUtilization all;
  all.begin_domain(here, from, true);
  all.begin_domain(there, from, true);
  all.add_pause(here, from + 3 * ms, from + 4 * ms);
  all.begin_pause(there, from + 15 * ms);
  const auto now = all.windows_at(from + 20 * ms);
  EXPECT_FALSE(window(all, 10 * ms).is_known());
  // The open pause is left out, of whatever length it will be.
  all.lose(there, from + 15 * ms);
  for (const DomainLife& domain : {here, there}) all.end_domain(domain, from + 20 * ms);
  for (std::size_t i = 0; i < now.size(); ++i) {
    EXPECT_EQ(now[i].is_known(), all.windows()[i].is_known()) << i;
    EXPECT_EQ(now[i].least(), all.windows()[i].least()) << i;
    EXPECT_EQ(now[i].percentile(90), all.windows()[i].percentile(90)) << i;
  }
}

/// Random pauses, against each position of a window one by one.
TEST(MutatorUtilization, EqualsWhatEachWindowSays) {
  constexpr std::uint64_t grid = ms / 10, slots = 4'000;
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<bool> paused(slots);
    MutatorUtilization all;
    all.begin_domain(here, from, true);
    const std::uint64_t most = 1 + random() % 40;
    for (std::uint64_t at = random() % 50; at < slots;) {
      const std::uint64_t end = std::min(slots, at + 1 + random() % most);
      all.add_pause(here, from + at * grid, from + end * grid);
      std::fill(paused.begin() + static_cast<std::ptrdiff_t>(at), paused.begin() + static_cast<std::ptrdiff_t>(end),
                true);
      at = end + random() % (1 + random() % 200);
    }
    all.end_domain(here, from + slots * grid);
    for (const std::uint64_t length : {ms, 10 * ms, 100 * ms}) {
      const auto size = static_cast<std::ptrdiff_t>(length / grid);
      std::vector<double> shares;
      for (auto begin = paused.begin(); begin + size <= paused.end(); ++begin) {
        const auto count = std::count(begin, begin + size, true);
        shares.push_back(1 - static_cast<double>(count) / static_cast<double>(size));
      }
      std::ranges::sort(shares);
      EXPECT_NEAR(window(all, length).least(), shares.front(), 1e-9) << length;
      const double tenth = shares[shares.size() / 10];
      // The window goes on from one of these positions to the next.
      EXPECT_NEAR(window(all, length).percentile(90), tenth, 0.01 + 1 / static_cast<double>(size)) << length;
    }
  }
}

TEST(MutatorUtilization, ADomainWithTooManyPausesHasNoLongWindows) {
  MutatorUtilization all(1'000);
  all.begin_domain(here, from, true);
  constexpr std::uint64_t length = ms / 100;
  for (std::uint64_t i = 0; i < 20'000; ++i) all.add_pause(here, from + 2 * i * length, from + (2 * i + 1) * length);
  all.end_domain(here, from + 400 * ms);
  for (const std::uint64_t known : {ms, 3 * ms}) EXPECT_NEAR(window(all, known).least(), 0.5, 0.01) << known;
  for (const std::uint64_t unknown : {30 * ms, 100 * ms}) EXPECT_FALSE(window(all, unknown).is_known()) << unknown;
}

}  // namespace
}  // namespace rtev
