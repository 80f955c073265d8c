// SPDX-License-Identifier: MIT
// What the tests of Perfetto traces share: a sink over a small world, and its trace read back.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/output/output.hpp"
#include "formats/perfetto/perfetto_sink.hpp"
#include "rtev/names.hpp"
#include "support/perfetto_check.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {

/// "2000 request user": time, name and category, with details if there are any.
inline std::string text(const PerfettoEvent& event) {
  std::string made = std::to_string(event.time) + ' ' + event.name + ' ' + event.category;
  for (const auto& [name, value] : event.details) made += ' ' + name + '=' + value;
  return made;
}

inline std::vector<std::string> texts(const std::vector<PerfettoEvent>& events) {
  std::vector<std::string> made;
  for (const PerfettoEvent& event : events) made.push_back(text(event));
  return made;
}

/// The same with the end: "2000 request user -2300", indented by depth.
inline std::vector<std::string> texts(const std::vector<PerfettoSlice>& slices) {
  std::vector<std::string> made;
  for (const PerfettoSlice& slice : slices)
    made.push_back(std::string(slice.depth, ' ') + text(slice) + " -" + std::to_string(slice.end));
  return made;
}

class PerfettoTest : public testing::Test {
 protected:
  static constexpr std::int32_t pid = 4242;

  PerfettoTest() {
    world_.user_names = {{1, "request"}, {2, "query"}};
    sink_.header({.version = "0.1",
                  .host = "box",
                  .kernel = "6.18.0-1",
                  .machine = "x86_64",
                  .command_line = {"rtev-bpf", "record"},
                  .start_ns = 1'000,
                  .start_realtime_ns = 1'700'000'000'000'000'000});
  }

  Events ring() const { return Events{world_.slot}; }
  static Events sched() { return Events{0}; }
  void draw(const Events& events) { sink_.consume(events.batch(), world_.registry); }

  void change(std::uint64_t time, std::uint32_t cpu, const Thread& prev, const Thread& next,
              LeftState state = LeftState::sleeping) {
    draw(sched().add_record(time, EventKind::sched_switch,
                            rtev::SchedSwitch{.cpu = cpu, .state = state, .prev = prev, .next = next}, 0, 1));
  }
  static Thread idle() { return make_thread(0, 0, "swapper/0", false); }
  static Thread ours(std::int32_t tid, std::int32_t domain = -1) {
    Thread thread = make_thread(pid, tid, "server", true);
    thread.domain = domain;
    if (domain >= 0) thread.role = ThreadRole::mutator;
    return thread;
  }

  /// What a viewer makes of all that was drawn.
  PerfettoTrace finish(RunSummary summary = {.end_ns = 100'000}) {
    sink_.summary(summary, world_.registry);
    PerfettoTrace trace = read_perfetto(output_.text());
    EXPECT_EQ(trace.all_errors(), "");
    EXPECT_EQ(trace.bytes_left, 0U);
    return trace;
  }

  World world_;
  StringOutput output_;
  PerfettoSink sink_{output_, {.flush_interval_ns = 0}};
};

}  // namespace rtev::test
