// SPDX-License-Identifier: MIT
// The stream of a server, for tests of intervals and of the screen.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "stream/sink.hpp"
#include "unit/analysis/scheduling.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {

/// A server whose heap grows, that collects every 100 ms for half a millisecond, and once for long. It marks its
/// requests.
class AServer {
 public:
  static constexpr std::uint64_t second = 1'000'000'000, ms = 1'000'000, begin_ns = 5 * second;

  explicit AServer(const std::string& name = "server") {
    ProcessInfo info = World::default_info();
    info.comm = name;
    world = std::make_unique<World>(std::move(info));
    world->user_names = {{1, "request"}};
  }

  void begin(Sink& sink) const {
    sink.header({.version = "1.2", .start_ns = begin_ns, .start_realtime_ns = 1'763'693'912 * second});
    feed(sink, Events(0).add_record(begin_ns, EventKind::process, ProcessRecord{world->process, 0, 0},
                                    static_cast<std::uint16_t>(ProcessAction::exec)));
    feed(sink, Events(world->slot).add(begin_ns, Lifecycle::ring_start, 4242));
    feed(sink, Events(0).add_record(begin_ns, EventKind::sched_switch, enters(a_thread(4242, 4242, 0)), 0,
                                    first_sched_stream));
  }
  /// The request with this number, at that many times 100 ms.
  void serve(Sink& sink, std::uint64_t number, std::uint64_t pause_ns = ms / 2) const {
    const std::uint64_t at = begin_ns + number * 100 * ms;
    feed(sink, Events(world->slot)
                   .add(at, EventKind::user_begin, 1)
                   .add(at + ms, EventKind::begin, phase_major)
                   .add(at + ms, EventKind::begin, id_of("major_slice"))
                   .add(at + ms + pause_ns, EventKind::end, id_of("major_slice"))
                   .add(at + ms + pause_ns, EventKind::end, phase_major)
                   .add(at + 2 * ms + pause_ns, EventKind::user_end, 1)
                   .add(at + 3 * ms + pause_ns, EventKind::counter, counter("minor_allocated"), 100'000)
                   .add(at + 3 * ms + pause_ns, EventKind::counter, counter("major_heap_words"),
                        1'000'000 + number * 50'000));
  }
  static std::uint16_t id_of(std::string_view phase) {
    return static_cast<std::uint16_t>(find_phase(Family::since_5_3, phase).value());
  }
  static std::uint16_t counter(std::string_view name) {
    return static_cast<std::uint16_t>(find_counter(Family::since_5_3, name).value());
  }
  void feed(Sink& sink, const Events& events) const { sink.consume(events.batch(), world->registry); }

  std::unique_ptr<World> world;
};

}  // namespace rtev::test
