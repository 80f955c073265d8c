// SPDX-License-Identifier: MIT
// A Chrome trace of a small world, read back as a viewer does.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/chrome/chrome_sink.hpp"
#include "formats/output/output.hpp"
#include "support/chrome_check.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {

inline constexpr std::int32_t chrome_pid = 4242;
inline constexpr std::uint64_t start_ns = 5'000'000;

/// "request user 10-20", with arguments if there are any, indented by depth.
inline std::vector<std::string> texts(const std::vector<ChromeTrace::Span>& spans) {
  std::vector<std::string> made;
  for (const auto& span : spans) {
    made.push_back(std::string(span.depth, ' ') + span.name + ' ' + span.category + ' ' + std::to_string(span.from) +
                   '-' + std::to_string(span.to) + (span.args.empty() ? "" : ' ' + span.args.dump()));
  }
  return made;
}

/// "request 10 t": the scope, with arguments if there are any.
inline std::vector<std::string> texts(const std::vector<ChromeTrace::Instant>& instants) {
  std::vector<std::string> made;
  for (const auto& instant : instants) {
    made.push_back(instant.name + ' ' + std::to_string(instant.time) + ' ' + instant.scope +
                   (instant.args.empty() ? "" : ' ' + instant.args.dump()));
  }
  return made;
}

class Chrome : public testing::Test {
 protected:
  Chrome() {
    world_.user_names = {{1, "request"}, {2, "query"}};
    sink_.header({.version = "0.1.0",
                  .host = "box",
                  .kernel = "6.18.0",
                  .machine = "x86_64",
                  .command_line = {"rtev-bpf"},
                  .start_ns = start_ns});
  }

  Events ring() const { return Events{world_.slot}; }
  void add(const Events& events) { sink_.consume(events.batch(), world_.registry); }
  void change(std::uint64_t time, std::uint32_t cpu, const Thread& prev, const Thread& next,
              LeftState state = LeftState::sleeping) {
    add(Events{0}.add_record(time, EventKind::sched_switch,
                             SchedSwitch{.cpu = cpu, .state = state, .prev = prev, .next = next}, 0, 1));
  }
  void wake(std::uint64_t time, std::uint32_t cpu, const Thread& woken, const Thread& by) {
    add(Events{0}.add_record(time, EventKind::wakeup, Wakeup{cpu, woken, by}, 0, 1));
  }
  static Thread thread(std::int32_t tid, std::int32_t domain = -1, ThreadRole role = ThreadRole::unknown) {
    Thread made = make_thread(chrome_pid, tid, "server", true);
    made.domain = domain;
    made.role = role;
    return made;
  }
  static Thread idle() { return make_thread(0, 0, "swapper/0", false); }
  static Thread stranger(std::int32_t tid = 99) { return make_thread(tid, tid, "python3", false); }

  /// Ends the trace, and has it read by a strict parser.
  ChromeTrace finish(std::uint64_t end_ns = 1'000'000'000) {
    RunSummary summary;
    summary.end_ns = end_ns;
    summary.drops = {{"switch", 3}};
    sink_.summary(summary, world_.registry);
    return read_chrome_trace(output_.text());
  }
  /// The same of a trace in which a viewer finds nothing wrong.
  ChromeTrace finish_well(std::uint64_t end_ns = 1'000'000'000) {
    ChromeTrace trace = finish(end_ns);
    EXPECT_TRUE(trace.problems.empty()) << trace.problems.front();
    return trace;
  }

  World world_;
  StringOutput output_;
  ChromeSink sink_{output_};
};

}  // namespace rtev::test
