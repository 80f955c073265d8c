// SPDX-License-Identifier: MIT
// A traced world whose statistics are taken: events by name, one after the other.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "analysis/stats/stats_sink.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {

class StatsTest : public testing::Test {
 protected:
  static constexpr std::int32_t pid = 4242;

  explicit StatsTest(Family family = Family::since_5_3) : family_(family) {
    world.registry.process(world.process).family = family;
  }

  std::uint16_t phase(std::string_view name) const {
    return static_cast<std::uint16_t>(find_phase(family_, name).value());
  }
  std::uint16_t counter(std::string_view name) const {
    return static_cast<std::uint16_t>(find_counter(family_, name).value());
  }

  void begin(std::uint64_t time, std::string_view name, std::uint16_t domain = 0) {
    feed(Events(world.slot).add(time, EventKind::begin, phase(name), 0, domain));
  }
  void end(std::uint64_t time, std::string_view name, std::uint16_t domain = 0) {
    feed(Events(world.slot).add(time, EventKind::end, phase(name), 0, domain));
  }
  void span(std::uint64_t from, std::uint64_t to, std::string_view name, std::uint16_t domain = 0) {
    begin(from, name, domain);
    end(to, name, domain);
  }
  void count(std::uint64_t time, std::string_view name, std::uint64_t value, std::uint16_t domain = 0) {
    feed(Events(world.slot).add(time, EventKind::counter, counter(name), value, domain));
  }
  void life(std::uint64_t time, Lifecycle event, std::uint16_t domain = 0) {
    feed(Events(world.slot).add(time, event, pid, domain));
  }
  void lose(std::uint64_t from, std::uint64_t to, std::uint64_t words, std::uint16_t domain = 0) {
    feed(Events(world.slot).add_record(to, EventKind::lost, Loss{words, from, to}, 0, domain));
  }
  void process(std::uint64_t time, ProcessAction action, std::int64_t detail = 0) {
    process(time, action, world.process, detail);
  }
  void process(std::uint64_t time, ProcessAction action, ProcessIndex index, std::int64_t detail) {
    feed(Events(0).add_record(time, EventKind::process, ProcessRecord{index, 0, detail},
                              static_cast<std::uint16_t>(action)));
  }
  void change(std::uint64_t time, const Thread& prev, const Thread& next, std::uint32_t cpu = 0,
              LeftState state = LeftState::preempted) {
    feed(Events(0).add_record(time, EventKind::sched_switch,
                              SchedSwitch{.cpu = cpu, .state = state, .prev = prev, .next = next}, 0,
                              first_sched_stream));
  }
  static Thread thread(std::int32_t tid, std::int32_t domain, std::int32_t of = pid) {
    Thread thread = make_thread(of, tid, "server", true);
    thread.domain = domain;
    return thread;
  }
  static Thread stranger() { return make_thread(1, 1, "init", false); }

  void feed(const Events& events) { stats.consume(events.batch(), world.registry); }

  ProcessStats figures() {
    const StatsReport report = stats.report(world.registry);
    return report.processes.empty() ? ProcessStats{} : report.processes.front();
  }

  World world;
  Stats stats;

 private:
  Family family_;
};

}  // namespace rtev::test
