// SPDX-License-Identifier: MIT
// A stream with what the HTML report shows, made by hand.
#pragma once

#include <cstdint>
#include <string_view>

#include "stream/sink.hpp"
#include "unit/analysis/scheduling.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {

/// Seconds of a server with two domains. Every 100 ms both collect; each tenth time domain 1 comes 20 ms late, without
/// a CPU. The heap grows, requests are marked, and with `collects` the program calls Gc.full_major.
class HtmlReportStream {
 public:
  static constexpr std::uint64_t second = 1'000'000'000, ms = 1'000'000, begin_ns = 5 * second;

  explicit HtmlReportStream(World& world) : world_(world) { world_.user_names.try_emplace(1, "request"); }

  std::uint64_t rounds = 120;
  bool collects = false;
  std::string_view collects_by = "explicit_gc_full_major";
  bool grows = true;
  bool sees_first = true;    ///< the switches of domain 0's thread
  std::uint64_t cycles = 0;  ///< how many of the rounds end a major cycle, from the first one on

  void run(Sink& sink) {
    sink.header({.version = "1.2", .start_ns = begin_ns, .start_realtime_ns = 1'763'693'912 * second});
    const auto feed = [&](const Events& events) { sink.consume(events.batch(), world_.registry); };
    feed(Events(0).add_record(begin_ns, EventKind::process, ProcessRecord{world_.process, 0, 0},
                              static_cast<std::uint16_t>(ProcessAction::exec)));
    feed(Events(world_.slot).add(begin_ns, Lifecycle::ring_start, 4242));
    if (sees_first)
      feed(Events(0).add_record(begin_ns, EventKind::sched_switch, enters(first_), 0, first_sched_stream));
    feed(Events(0).add_record(begin_ns, EventKind::sched_switch, enters(second_, 1), 0, first_sched_stream));
    for (std::uint64_t i = 0; i < rounds; ++i) feed_round(sink, i);
    const std::uint64_t end_ns = begin_ns + rounds * 100 * ms;
    feed(Events(0).add_record(end_ns, EventKind::process, ProcessRecord{world_.process, 0, 0},
                              static_cast<std::uint16_t>(ProcessAction::exit)));
    sink.summary({.start_ns = begin_ns, .end_ns = end_ns}, world_.registry);
  }

 private:
  void feed_round(Sink& sink, std::uint64_t round) {
    const bool is_late = round % 10 == 9;
    const std::uint64_t at = begin_ns + round * 100 * ms + 10 * ms, arrives = at + (is_late ? 20 * ms : ms / 10);
    const auto feed = [&](const Events& events) { sink.consume(events.batch(), world_.registry); };
    feed(Events(world_.slot)
             .add(at - ms, EventKind::user_begin, 1)
             .add(at, EventKind::begin, id_of("stw_leader"))
             .add(at + ms / 100, EventKind::begin, id_of("stw_api_barrier")));
    if (is_late) {
      feed(Events(0)
               .add_record(at + ms / 10, EventKind::sched_switch,
                           leaves(second_, LeftState::preempted, 1, competitor()), 0, first_sched_stream)
               .add_record(arrives - ms / 10, EventKind::sched_switch, enters(second_, 1, competitor()), 0,
                           first_sched_stream));
    }
    Events rest(world_.slot);
    rest.add(arrives, EventKind::begin, id_of("stw_handler"), 0, 1)
        .add(arrives + 1000, EventKind::begin, id_of("stw_api_barrier"), 0, 1)
        .add(arrives + 2000, EventKind::end, id_of("stw_api_barrier"), 0, 1)
        .add(arrives + 2000, EventKind::end, id_of("stw_api_barrier"))
        .add(arrives + 3000, EventKind::begin, phase_minor)
        .add(arrives + 3000, EventKind::begin, phase_minor, 0, 1)
        .add(arrives + ms, EventKind::end, phase_minor, 0, 1)
        .add(arrives + ms, EventKind::end, phase_minor)
        .add(arrives + ms, EventKind::counter, counter("minor_allocated"), 800'000)
        .add(arrives + ms + 1000, EventKind::end, id_of("stw_handler"), 0, 1)
        .add(arrives + ms + 1000, EventKind::end, id_of("stw_leader"))
        .add(arrives + 2 * ms, EventKind::counter, counter("major_heap_words"),
             1'000'000 + (grows ? round * 500'000 : 0));
    if (collects) {
      rest.add(arrives + 3 * ms, EventKind::begin, id_of(collects_by))
          .add(arrives + 4 * ms, EventKind::end, id_of(collects_by));
    }
    if (round < cycles) {
      rest.add(arrives + 4 * ms, EventKind::begin, id_of("major_gc_stw"))
          .add(arrives + 4 * ms + 1000, EventKind::end, id_of("major_gc_stw"));
    }
    feed(rest.add(arrives + 5 * ms, EventKind::user_end, 1));
  }

  static std::uint16_t id_of(std::string_view phase) {
    return static_cast<std::uint16_t>(find_phase(Family::since_5_3, phase).value());
  }
  static std::uint16_t counter(std::string_view name) {
    return static_cast<std::uint16_t>(find_counter(Family::since_5_3, name).value());
  }

  World& world_;
  const Thread first_ = a_thread(4242, 4242, 0), second_ = a_thread(4242, 4243, 1);
};

}  // namespace rtev::test
