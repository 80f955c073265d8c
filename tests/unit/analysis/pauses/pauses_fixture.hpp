// SPDX-License-Identifier: MIT
// A stream made by hand for tests of `pauses`: phases of domains and turns of threads, in any order.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "analysis/pauses/blame.hpp"
#include "analysis/pauses/pauses_sink.hpp"
#include "unit/analysis/scheduling.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {

/// Ids of the 5.3+ family.
inline constexpr std::uint16_t phase_interrupt = 19, phase_slice = 27, phase_minor_barrier = 32,
                               phase_start_barrier = 33, phase_handler = 34, phase_leader = 35;

class PausesTest : public testing::Test {
 protected:
  /// Phase events of domain 0, or another one.
  void begin(std::uint64_t time, std::uint16_t phase, std::uint16_t domain = 0) {
    items_.push_back({time, domain, EventKind::begin, phase, {}});
  }
  void end(std::uint64_t time, std::uint16_t phase, std::uint16_t domain = 0) {
    items_.push_back({time, domain, EventKind::end, phase, {}});
  }
  void span(std::uint64_t from, std::uint64_t to, std::uint16_t phase, std::uint16_t domain = 0) {
    begin(from, phase, domain);
    end(to, phase, domain);
  }
  /// A fiber of Eio runs on the domain.
  void fiber(std::uint64_t time, std::uint64_t id, std::uint16_t domain = 0) {
    constexpr std::uint16_t event = 77;
    world.user_names[event] = "eio.fiber";
    items_.push_back({time, domain, EventKind::user_int, event, id});
  }
  void switches(std::uint64_t time, const SchedSwitch& change) {
    items_.push_back({time, 0, EventKind::sched_switch, 0, change});
  }
  /// The thread has no cpu for a time, in which another one has it.
  void preempted(std::uint64_t from, std::uint64_t to, const Thread& by = competitor(),
                 const Thread& thread = a_thread(4242, 4242, 0), std::uint32_t cpu = 0) {
    switches(from, leaves(thread, LeftState::preempted, cpu, by));
    switches(to, enters(thread, cpu, by));
  }
  /// As with all switches traced: one between threads that are not tracked.
  void sees_all_switches() {
    switches(50, {.cpu = 9, .state = LeftState::preempted, .prev = competitor(), .next = nobody()});
  }
  void wakes_up(std::uint64_t time, const Wakeup& wakeup) { items_.push_back({time, 0, EventKind::wakeup, 0, wakeup}); }
  void loses(std::uint64_t from, std::uint64_t to, std::uint16_t domain, std::uint64_t words = 100) {
    items_.push_back({to, domain, EventKind::lost, 0, Loss{.words = words, .from_ns = from, .to_ns = to}});
  }
  /// Of the kernel's buffers.
  void drops(std::uint64_t from, std::uint64_t to, std::uint64_t records) {
    items_.push_back({from, dropped_stream, EventKind::lost, static_cast<std::uint16_t>(LossReason::dropped),
                      Loss{.words = records, .from_ns = from, .to_ns = to}});
  }
  void lifecycle(std::uint64_t time, Lifecycle id, std::uint16_t domain) {
    items_.push_back({time, domain, EventKind::lifecycle, static_cast<std::uint16_t>(id), {}});
  }
  void exits(std::uint64_t time) {
    items_.push_back({time, 0, EventKind::process, static_cast<std::uint16_t>(ProcessAction::exit),
                      ProcessRecord{.process = world.process, .peer = 0, .detail = 0}});
  }

  /// The thread has this stack: the innermost function first.
  void sampled(std::uint64_t time, std::int32_t tid, const std::vector<StackFrame>& frames,
               SampleKind kind = SampleKind::on_cpu, std::uint64_t ns = 1'000) {
    StackTable& stacks = world.registry.stacks();
    StackIndex stack = 0;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      stack = stacks.add_stack(stack, stacks.add_frame(*frame));
    items_.push_back({time, 0, EventKind::sample, static_cast<std::uint16_t>(kind),
                      Sample{.process = world.process,
                             .pid = 4242,
                             .tid = tid,
                             .domain = -1,
                             .cpu = 0,
                             .stack = stack,
                             .weight = ns,
                             .role = ThreadRole::mutator,
                             .holds_lock = true,
                             .zero = {}}});
  }

  void clear() { items_.clear(); }

  /// Plays all that was noted, in order of time. The text of the report has all details.
  PausesReport play(PausesOptions options = {}, const RunSummary& summary = {}) {
    std::ranges::stable_sort(items_, {}, &Item::time);
    Events events(world.slot);
    for (const Item& item : items_) {
      std::visit(
          [&](const auto& record) {
            if constexpr (std::is_same_v<std::decay_t<decltype(record)>, std::monostate>) {
              events.add(item.time, item.kind, item.id, 0, item.domain);
            } else if constexpr (std::is_same_v<std::decay_t<decltype(record)>, std::uint64_t>) {
              events.add(item.time, item.kind, item.id, record, item.domain);
            } else {
              events.add_record(item.time, item.kind, record, item.id, item.domain);
            }
          },
          item.record);
    }
    options.full = true;
    pauses = std::make_unique<Pauses>(options);
    pauses->header({.version = "1.2", .start_ns = 1});
    std::vector<Event> all(events.batch().events().begin(), events.batch().events().end());
    for (Event& event : all) {
      if (Source::unpack(event.source).domain == dropped_stream) event.source = Source{0, first_sched_stream}.pack();
    }
    pauses->consume(Batch(all, events.batch().payloads()), world.registry);
    pauses->summary(summary, world.registry);
    return pauses->report();
  }

  /// Plays; the only pause that is reported.
  const PauseDetails& only() {
    const auto worst = play().worst;
    EXPECT_EQ(worst.size(), 1U);
    return *worst.at(0);
  }
  PausesReport::Counts counts() const { return pauses->report().counts; }

  /// Of the worst pause.
  std::string blame() const {
    const PausesReport report = pauses->report();
    if (report.worst.empty()) return "no pause";
    return blame_text(*report.worst.front(), blame_of(*report.worst.front()), report.counts.switches_seen(),
                      *report.stacks);
  }

  World world;
  std::unique_ptr<Pauses> pauses;

 private:
  static constexpr std::uint16_t dropped_stream = (1u << Source::domain_bits) - 1;
  struct Item {
    std::uint64_t time;
    std::uint16_t domain;
    EventKind kind;
    std::uint16_t id;
    std::variant<std::monostate, std::uint64_t, SchedSwitch, Wakeup, Loss, ProcessRecord, Sample> record;
  };
  std::vector<Item> items_;
};

/// The thread of domain 0, that of domain 1, and the backup thread of domain 1.
inline Thread main_thread() {
  return a_thread(4242, 4242, 0);
}
inline Thread other_thread() {
  return a_thread(4242, 4300, 1);
}
inline Thread backup_thread() {
  Thread thread = a_thread(4242, 4301, 1);
  thread.role = ThreadRole::backup;
  return thread;
}

}  // namespace rtev::test
