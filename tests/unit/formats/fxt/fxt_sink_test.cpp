// SPDX-License-Identifier: MIT
// A recording shows the same events, field by field, as the stream it was made of.
#include "formats/fxt/fxt_sink.hpp"

#include <gtest/gtest.h>

#include <array>

#include "stream/recording_layout.hpp"
#include "unit/recording/recording.hpp"

namespace rtev::test {
namespace {

std::array<std::uint64_t, alloc_bucket_count> make_buckets() {
  std::array<std::uint64_t, alloc_bucket_count> buckets{};
  for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] = i * i;
  return buckets;
}

SchedSwitch make_switch(const Thread& prev, const Thread& next, LeftState state, std::uint32_t cpu = 1) {
  return {.cpu = cpu, .state = state, .prev = prev, .next = next};
}

Thread idle_thread(std::uint32_t cpu) {
  return make_thread(0, 0, "swapper/" + std::to_string(cpu), false);
}

void add_each_kind(Events& events, ProcessIndex index) {
  using enum EventKind;
  events.add(2000, begin, phase_major)
      .add(2010, begin, phase_minor, 0, 3)
      .add(2020, end, phase_minor, 0, 3)
      .add(2030, begin, unknown_phase)
      .add(2040, end, unknown_phase)
      .add(2050, counter, counter_minor_allocated, UINT64_MAX)
      .add(2060, counter, 4001, 17)
      .add_record(2070, alloc, make_buckets())
      .add(2080, Lifecycle::domain_spawn, static_cast<std::uint64_t>(-5), 2)
      .add(2090, lifecycle, 77, 4)
      .add(2100, user_unit, 3)
      .add(2110, user_int, 3, static_cast<std::uint64_t>(INT64_MIN))
      .add(2120, user_begin, 4)
      .add(2130, user_end, 4)
      .add_bytes(2140, user_custom, "plain text", 5)
      .add_bytes(2150, user_custom, all_bytes(), 5)
      .add_bytes(2160, user_custom, "", 5)
      .add_bytes(2165, user_custom, std::string(8184, 'x'), 5)
      .add(2170, end, phase_major)
      .add(2180, end, phase_wait)  // its begin is missing
      .add(2190, user_end, 9)
      .add_record(2200, lost, Loss{.words = 12, .from_ns = 0, .to_ns = 2200}, 0)
      .add_record(2210, lost, Loss{.words = 3, .from_ns = 2100, .to_ns = 2210}, 1, 3);
  for (std::uint16_t action = 0; action <= 7; ++action)
    events.add_record(2300 + action, EventKind::process, ProcessRecord{.process = index, .peer = 17, .detail = -2},
                      action);
}

void name_user_events(World& world) {
  world.user_names = {{3, "request"}, {4, "handler \"x\"\n"}, {5, "blob"}};
}

/// A recording that has begun, and the world of its events.
class FxtSinkTest : public testing::Test {
 protected:
  FxtSinkTest() { recording.header(make_header()); }

  /// Ends the recording, and compares what comes back.
  void expect_same(const Registry& registry) {
    recording.end(registry);
    test::expect_same(recording);
  }
  void expect_same() { expect_same(world.registry); }

  World world;
  Recording recording;
};

TEST_F(FxtSinkTest, EachKindComesBack) {
  name_user_events(world);
  Events events(world.slot);
  add_each_kind(events, world.process);
  recording.consume(events.batch(), world.registry);
  expect_same();
}

TEST_F(FxtSinkTest, FlagsComeBackWithEachKind) {
  name_user_events(world);
  for (const auto flags : {std::uint8_t{1}, std::uint8_t{255}}) {
    Events events(world.slot);
    add_each_kind(events, world.process);
    Events host(0);
    host.add_record(3000, EventKind::sched_switch,
                    make_switch(make_thread(1, 2, "a", true), make_thread(3, 4, "b", false), LeftState::sleeping))
        .add_record(3001, EventKind::wakeup,
                    Wakeup{.cpu = 1, .woken = make_thread(1, 2, "a", true), .by = make_thread(3, 4, "b", false)});
    for (const Events* const all : {&events, &host}) {
      std::vector<Event> flagged(all->batch().events().begin(), all->batch().events().end());
      for (Event& event : flagged) event.flags = flags;
      recording.consume(Batch(flagged, all->batch().payloads()), world.registry);
    }
  }
  expect_same();
}

TEST_F(FxtSinkTest, InvalidPayloadsComeBack) {
  Events events(world.slot);
  for (const EventKind kind :
       {EventKind::alloc, EventKind::lost, EventKind::process, EventKind::sched_switch, EventKind::wakeup}) {
    events.add_bytes(2000, kind, "too short").add_bytes(2001, kind, "").late();
  }
  recording.consume(events.batch(), world.registry);
  expect_same();
}

TEST_F(FxtSinkTest, EventsWithoutAProcessComeBack) {
  Events unknown(world.slot + 7);
  add_each_kind(unknown, 4711);
  recording.consume(unknown.batch(), world.registry);
  Events of_slot_0(0);
  add_each_kind(of_slot_0, 0);
  recording.consume(of_slot_0.batch(), world.registry);
  expect_same();
}

TEST(FxtSink, HostileStringsComeBack) {
  Recording recording;
  RunHeader header = make_header();
  header.command_line.insert(header.command_line.end(), hostile_strings().begin(), hostile_strings().end());
  header.command_line.push_back(std::string(100'000, 'a'));
  header.command_line.push_back("");
  header.host = all_bytes();
  recording.header(header);
  Registry registry;
  std::uint16_t id = 0;
  for (const std::string& text : hostile_strings()) {
    ProcessInfo info = World::default_info();
    info.comm = info.exe = info.runtime = info.version = info.ring_path = text;
    const ProcessIndex process = registry.add_process(info);
    const std::uint32_t slot =
        registry.add_ring({.process = process,
                           .domains = 1,
                           .producer = Producer{.name = text, .family = Family::since_5_3},
                           .user_event_name = [&](std::uint16_t) { return std::string_view(text); }});
    Events events(slot);
    add_each_kind(events, process);
    events.add_bytes(2500, EventKind::user_custom, text, ++id);
    recording.consume(events.batch(), registry);
    Events host(0);
    Thread thread = make_thread(1, 2, text, true);
    host.add_record(3000, EventKind::sched_switch,
                    make_switch(thread, make_thread(3, 4, "b", false), LeftState::sleeping));
    recording.consume(host.batch(), registry);
  }
  recording.end(registry);
  expect_same(recording);
}

TEST_F(FxtSinkTest, EverySchedulerFieldComesBack) {
  Events events(0);
  std::uint64_t time = 2000;
  for (std::uint8_t state = 0; state <= static_cast<std::uint8_t>(LeftState::other); ++state) {
    for (const std::uint32_t cpu : {0u, 1u, 65535u, 65536u}) {
      for (unsigned bits = 0; bits < 16; ++bits) {
        Thread prev = make_thread(4242, 4243, "server", true), next = make_thread(7, 8, "other", false);
        prev.holds_lock = (bits & 1) != 0;
        next.holds_lock = (bits & 2) != 0;
        if (bits & 4) {
          prev.domain = 3;
          prev.role = ThreadRole::backup;
          prev.priority = -1;
        }
        if (bits & 8) next.priority = INT16_MAX;
        events.add_record(++time, EventKind::sched_switch, make_switch(prev, next, static_cast<LeftState>(state), cpu));
        events.add_record(++time, EventKind::wakeup, Wakeup{.cpu = cpu, .woken = prev, .by = next});
        events.add_record(++time, EventKind::sched_switch,
                          make_switch(next, idle_thread(cpu), static_cast<LeftState>(state), cpu));
        events.add_record(++time, EventKind::wakeup, Wakeup{.cpu = cpu, .woken = next, .by = idle_thread(cpu + 1)});
        events.add_record(++time, EventKind::sched_switch,
                          make_switch(idle_thread(cpu), prev, LeftState::preempted, cpu));
      }
    }
  }
  events.add_record(++time, EventKind::sched_switch, make_switch(idle_thread(1), idle_thread(2), LeftState::idle));
  events.add_record(++time, EventKind::wakeup, Wakeup{.cpu = 1, .woken = idle_thread(1), .by = idle_thread(2)});
  events.add_record(
      ++time, EventKind::sched_switch,
      make_switch(make_thread(-1, -2, "odd", true), make_thread(INT32_MAX, INT32_MAX, "", true), LeftState::sleeping));
  recording.consume(events.batch(), world.registry);
  expect_same();
}

TEST_F(FxtSinkTest, ManyIdleThreadsAndThreadsComeBack) {
  for (int round = 0; round < 2; ++round) {
    Events events(0);
    for (std::uint32_t i = 0; i < 5000; ++i) {
      events.add_record(2000 + i, EventKind::sched_switch,
                        make_switch(make_thread(1, 1, "x", true), idle_thread(i), LeftState::sleeping, i));
    }
    recording.consume(events.batch(), world.registry);
  }
  Events events(0);
  for (std::int32_t tid = 1; tid < 70'000; ++tid) {
    events.add_record(9000, EventKind::wakeup,
                      Wakeup{.cpu = 1, .woken = make_thread(1, tid, "t", true), .by = make_thread(1, 1, "x", true)});
  }
  recording.consume(events.batch(), world.registry);
  expect_same();
}

TEST_F(FxtSinkTest, MetadataIsThatOfItsTime) {
  const auto consume = [&](std::uint64_t time) {
    Events events(world.slot);
    add_each_kind(events, world.process);
    events.add(time, EventKind::user_int, 3, 1).add(time, EventKind::begin, phase_minor);
    recording.consume(events.batch(), world.registry);
  };
  ProcessInfo& info = world.registry.process(world.process);
  consume(2000);
  world.user_names[3] = "known now";
  consume(2001);
  world.user_names[3] = "renamed";
  info.name = info.comm = "renamed";
  consume(2002);
  world.user_names.erase(3);
  info.family = Family::before_5_3;
  info.family_source = FamilySource::ring;
  consume(2003);
  info.exe = "/another";
  info.version = "";
  info.ring = RingState::stopped;
  info.ring_path = "/gone";
  info.ns_pid = 8;
  info.start_ticks = UINT64_MAX;
  info.exec_generation = 9;
  info.ended = true;
  info.max_rss_bytes = 8192;
  consume(2004);
  world.user_names[3] = "#3";
  consume(2005);
  expect_same();
}

TEST_F(FxtSinkTest, ReusedRingSlotsComeBack) {
  world.user_names[3] = "first";
  const auto consume = [&](std::uint32_t slot) {
    Events events(slot);
    add_each_kind(events, world.process);
    recording.consume(events.batch(), world.registry);
  };
  consume(world.slot);
  world.registry.remove_ring(world.slot);
  consume(world.slot);  // of a ring that is gone
  world.registry.retire_process(world.process);
  // Freed slots come last: all others are taken before.
  ProcessInfo info = World::default_info();
  info.pid = 99;
  info.comm = "next";
  const ProcessIndex next = world.registry.add_process(info);
  std::uint32_t slot = 0;
  do slot = world.add_ring(next);
  while (slot != world.slot);
  consume(slot);
  expect_same();
}

TEST_F(FxtSinkTest, MoreSourcesThanThreadSlots) {
  Registry registry;
  std::vector<std::uint32_t> slots;
  for (std::int32_t pid = 1; pid <= 5; ++pid) {
    ProcessInfo info = World::default_info();
    info.pid = pid * 1000;
    slots.push_back(registry.add_ring({.process = registry.add_process(info), .domains = 128}));
  }
  for (std::uint64_t round = 0; round < 3; ++round) {
    std::vector<Event> events;
    for (std::uint16_t domain = 0; domain < 128; ++domain) {
      for (const std::uint32_t slot : slots) {
        events.push_back({.time = 2000 + round * 10,
                          .value = 0,
                          .source = Source{slot, domain}.pack(),
                          .id = phase_minor,
                          .kind = round % 2 == 0 ? EventKind::begin : EventKind::end,
                          .flags = 0});
      }
    }
    recording.consume(Batch(events, {}), registry);
  }
  expect_same(registry);
}

TEST_F(FxtSinkTest, MoreNamesThanStringSlots) {
  const auto name_of = [](std::uint16_t id) { return "event " + std::to_string(id); };
  constexpr std::uint16_t names = 40'000;
  static_assert(names > fxt::max_string_slot);
  for (std::uint16_t id = 0; id < names; ++id) world.user_names[id] = name_of(id);
  for (int round = 0; round < 2; ++round) {
    Events events(world.slot);
    for (std::uint16_t id = 0; id < names; ++id) events.add(2000, EventKind::user_unit, id);
    events.add(2000, EventKind::begin, phase_minor).add(2000, EventKind::user_unit, 65'535);
    recording.consume(events.batch(), world.registry);
  }
  expect_same();
}

TEST_F(FxtSinkTest, ASpanTakesSixteenBytesAtEachEnd) {
  const auto spans = [&](std::uint64_t from, std::size_t count) {
    std::vector<Event> events;
    for (std::size_t i = 0; i < count; ++i) {
      const auto add = [&](EventKind kind) {
        events.push_back({from + i, 0, Source{world.slot, 0}.pack(), phase_minor, kind, 0});
      };
      add(EventKind::begin);
      add(EventKind::end);
    }
    recording.consume(Batch(events, {}), world.registry);
    recording.flush();
  };
  spans(2000, 1);
  const std::size_t before = recording.recorded().size();
  spans(3000, 1000);
  EXPECT_EQ(recording.recorded().size() - before, 2000u * 16);
}

TEST_F(FxtSinkTest, ListsAllProcessesInOrder) {
  Registry registry;
  std::vector<ProcessIndex> processes;
  for (std::int32_t i = 0; i < 6000; ++i) {
    ProcessInfo info = World::default_info();
    info.pid = 100'000 - i;
    info.words = {.written = 6, .delivered = 1, .lost = 2, .before_attach = 1, .corrupt = 1, .unread = 1, .events = 9};
    info.domains = 2;
    processes.push_back(registry.add_process(info));
  }
  // Events of some processes; some processes are no longer listed.
  Events events(0);
  for (std::size_t i = 6000; i-- > 0; i -= std::min<std::size_t>(i, 2))
    events.add_record(2000, EventKind::process, ProcessRecord{.process = processes[i], .peer = 0, .detail = 0}, 7);
  recording.consume(events.batch(), registry);
  for (std::size_t i = 0; i < 5000; ++i) registry.retire_process(processes[i]);
  EXPECT_GT(registry.others().count, 0u);
  expect_same(registry);
}

TEST(FxtSink, StopsWhenNothingCanBeWritten) {
  class Full final : public Output {
   public:
    bool write(std::string_view) override { return false; }
    const std::optional<Error>& error() const override { return error_; }

   private:
    std::optional<Error> error_ = Error{.what = "cannot write", .subject = "disk", .why = "it is full"};
  } full;
  World world;
  FxtSink sink(full, {.max_held_ns = 0});
  sink.header(make_header());
  for (int i = 0; i < 3; ++i) {
    Events events(world.slot);
    add_each_kind(events, world.process);
    sink.consume(events.batch(), world.registry);
    sink.flush();
  }
  sink.summary({}, world.registry);
  ASSERT_TRUE(sink.writer().error());
  EXPECT_EQ(sink.writer().error()->subject, "disk");
}

TEST(FxtSink, WritesAtIntervals) {
  StringOutput file;
  World world;
  FxtSink sink(file, {.max_held_ns = UINT64_MAX / 2});
  sink.header(make_header());
  const auto consume = [&] {
    Events events(world.slot);
    add_each_kind(events, world.process);
    sink.consume(events.batch(), world.registry);
    sink.flush();
  };
  consume();
  const std::size_t first = file.text().size();
  consume();
  EXPECT_EQ(file.text().size(), first);
  sink.summary({}, world.registry);
  EXPECT_GT(file.text().size(), first);
}

}  // namespace
}  // namespace rtev::test
