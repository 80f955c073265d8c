// SPDX-License-Identifier: MIT
#include "stream/span_tracker.hpp"

#include <gtest/gtest.h>

#include <ostream>

namespace rtev {
namespace {

constexpr SpanTracker::Ring ring{1, 0}, other_domain{1, 1}, other_process{2, 0};
constexpr SpanTracker::Span minor{false, 11}, major{false, 6}, wait{false, 42}, request{true, 11};

TEST(Spans, NestAndMeasure) {
  SpanTracker spans;
  EXPECT_EQ(spans.begin(ring, major, 100), 0U);
  EXPECT_EQ(spans.begin(ring, minor, 150), 1U);
  EXPECT_EQ(spans.depth(ring), 2U);
  const auto inner = spans.end(ring, minor, 170);
  EXPECT_EQ(inner.depth, 1U);
  EXPECT_EQ(inner.duration_ns, 20U);
  const auto outer = spans.end(ring, major, 200);
  EXPECT_EQ(outer.depth, 0U);
  EXPECT_EQ(outer.duration_ns, 100U);
  EXPECT_EQ(spans.depth(ring), 0U);
}

TEST(Spans, KeepRingsApart) {
  SpanTracker spans;
  spans.begin(ring, minor, 1);
  EXPECT_EQ(spans.begin(other_domain, minor, 5), 0U);
  EXPECT_EQ(spans.begin(other_process, minor, 7), 0U);
  EXPECT_EQ(spans.end(other_domain, minor, 6).duration_ns, 1U);
  EXPECT_EQ(spans.end(other_process, minor, 9).duration_ns, 2U);
  EXPECT_EQ(spans.end(ring, minor, 10).duration_ns, 9U);
}

TEST(Spans, KeepUserSpansApartFromPhasesOfTheSameId) {
  SpanTracker spans;
  spans.begin(ring, request, 1);
  spans.begin(ring, minor, 2);
  EXPECT_EQ(spans.end(ring, minor, 4).duration_ns, 2U);
  EXPECT_EQ(spans.end(ring, request, 5).duration_ns, 4U);
}

TEST(Spans, EndsWithoutBeginsChangeNothing) {
  SpanTracker spans;
  EXPECT_FALSE(spans.end(ring, minor, 5).duration_ns);
  spans.begin(ring, major, 10);
  const auto stray = spans.end(ring, minor, 12);
  EXPECT_FALSE(stray.duration_ns);
  EXPECT_EQ(stray.depth, 1U);
  EXPECT_EQ(spans.end(ring, major, 15).duration_ns, 5U);
}

TEST(Spans, BeginsWithoutEndsAreGivenUpWithTheirParent) {
  SpanTracker spans;
  spans.begin(ring, major, 10);
  spans.begin(ring, request, 11);
  spans.begin(ring, minor, 12);
  const auto ended = spans.end(ring, major, 20);
  EXPECT_EQ(ended.depth, 0U);
  EXPECT_EQ(ended.duration_ns, 10U);
  EXPECT_EQ(spans.depth(ring), 0U);
}

TEST(Spans, OverlappingWaitsOfThreadsDoNotDerail) {
  // Thread A waits; thread B of the same domain runs, waits too; A comes back and goes on before B does.
  SpanTracker spans;
  spans.begin(ring, request, 0);
  spans.begin(ring, wait, 1);
  spans.begin(ring, minor, 2);
  spans.end(ring, minor, 3);
  spans.begin(ring, wait, 4);
  spans.end(ring, wait, 5);
  EXPECT_EQ(spans.end(ring, request, 6).duration_ns, 6U);
  EXPECT_FALSE(spans.end(ring, wait, 7).duration_ns);
  EXPECT_EQ(spans.depth(ring), 0U);
  spans.begin(ring, minor, 8);
  EXPECT_EQ(spans.end(ring, minor, 9).duration_ns, 1U);
}

TEST(Spans, TimeThatGoesBackwardsHasNoDuration) {
  SpanTracker spans;
  spans.begin(ring, minor, 10);
  EXPECT_FALSE(spans.end(ring, minor, 9).duration_ns);
  EXPECT_EQ(spans.depth(ring), 0U);
}

TEST(Spans, ForgetRingsAndProcesses) {
  SpanTracker spans;
  spans.begin(ring, minor, 1);
  spans.begin(other_domain, minor, 1);
  spans.begin(other_process, minor, 1);
  spans.reset(ring);
  EXPECT_EQ(spans.depth(ring), 0U);
  EXPECT_EQ(spans.depth(other_domain), 1U);
  spans.forget(1);
  EXPECT_EQ(spans.depth(other_domain), 0U);
  EXPECT_EQ(spans.depth(other_process), 1U);
}

TEST(Spans, AreBoundedInDepthAndKeepTheInnermost) {
  SpanTracker spans;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    spans.begin(ring, request, i);
    ASSERT_LE(spans.depth(ring), 1024U);
  }
  spans.begin(ring, minor, 200'000);
  EXPECT_EQ(spans.end(ring, minor, 200'005).duration_ns, 5U);
  EXPECT_EQ(spans.end(ring, request, 200'010).duration_ns, 200'010U - 99'999U);
}

TEST(Spans, AreBoundedOverAllRings) {
  SpanTracker spans{{.rings = 2, .open = 8}};
  for (std::uint64_t i = 0; i < 20; ++i) spans.begin(ring, request, i);
  EXPECT_LE(spans.depth(ring), 8U);
  while (spans.depth(ring) < 8) spans.begin(ring, request, 30);
  spans.begin(other_domain, minor, 40);  // no room: not remembered, no harm
  EXPECT_EQ(spans.depth(other_domain), 0U);
  spans.begin(other_process, minor, 40);
  EXPECT_FALSE(spans.end(other_process, minor, 41).duration_ns);
  spans.reset(ring);
  spans.begin(other_domain, minor, 50);
  EXPECT_EQ(spans.end(other_domain, minor, 51).duration_ns, 1U);
}

TEST(Spans, ForgetProcessesThatEndedInSilence) {
  Registry registry;
  SpanTracker spans{{.rings = 2000, .open = 10'000}};
  ProcessInfo running;
  running.pid = 1;
  const ProcessIndex first = registry.add_process(running);
  spans.begin({first, 0}, minor, 1);
  ProcessInfo gone;
  gone.ended = true;
  for (int i = 0; i < 1999; ++i) spans.begin({registry.add_process(gone), 0}, minor, 1);
  spans.forget_ended(registry);
  EXPECT_EQ(spans.end({first, 0}, minor, 3).duration_ns, 2U);
  const ProcessIndex next = registry.add_process(running);
  spans.begin({next, 0}, minor, 5);  // there is room again
  EXPECT_EQ(spans.end({next, 0}, minor, 6).duration_ns, 1U);
}

}  // namespace
}  // namespace rtev
