// SPDX-License-Identifier: MIT
#include "session/live/sources.hpp"

#include <gtest/gtest.h>

#include "unit/stream/world.hpp"

namespace rtev {
namespace {

struct NoSink : Sink {
  void header(const RunHeader&) override {}
  void consume(const Batch&, const Registry&) override {}
  void flush() override {}
  void summary(const RunSummary&, const Registry&) override {}
};

/// How many are late of two events, a later one of which is delivered first.
std::uint64_t late_after(ProcessAction action) {
  test::World world;
  Timeline timeline([] { return std::uint64_t{1000}; });
  NoSink sink;
  StreamOutput output(timeline, world.registry, sink);
  TimedTasks tasks;
  const Sources::StreamParts parts{
      .registry = world.registry, .timeline = timeline, .output = output, .tasks = tasks, .start_ns = 0};
  timeline.push(test::Events(world.slot).add(100, EventKind::begin, 1).batch());
  output.deliver(200);
  parts.push(50, action, {.process = 0, .peer = 0, .detail = 0});
  output.deliver(300);
  EXPECT_TRUE(timeline.empty());
  return timeline.late();
}

TEST(Sources, WhatTheTracerDoesIsNotLate) {
  EXPECT_EQ(late_after(ProcessAction::ring), 0) << "the ring was announced long before it was opened";
  EXPECT_EQ(late_after(ProcessAction::unreadable), 0);
  EXPECT_EQ(late_after(ProcessAction::exec), 1) << "that the process did";
}

}  // namespace
}  // namespace rtev
