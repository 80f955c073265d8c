// SPDX-License-Identifier: MIT
#include "stream/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace rtev {
namespace {

ProcessInfo info_of(std::int32_t pid) {
  ProcessInfo info;
  info.pid = pid;
  info.words.written = info.words.delivered = 10;
  info.words.events = 4;
  return info;
}

std::vector<std::int32_t> pids_of(const Registry& registry) {
  std::vector<std::int32_t> pids;
  for (const ProcessInfo& info : registry.processes()) pids.push_back(info.pid);
  return pids;
}

Event event_of(std::uint32_t slot, EventKind kind, std::uint16_t id) {
  return {.time = 1, .value = 0, .source = Source{slot, 3}.pack(), .id = id, .kind = kind, .flags = 0};
}

TEST(Registry, KeepsProcessesInOrderOfAppearance) {
  Registry registry;
  const ProcessIndex first = registry.add_process(info_of(30));
  const ProcessIndex second = registry.add_process(info_of(10));
  EXPECT_NE(first, 0U);
  EXPECT_NE(first, second);
  EXPECT_THAT(pids_of(registry), testing::ElementsAre(30, 10));
  registry.process(first).comm = "renamed";
  EXPECT_EQ(std::as_const(registry).process(first).comm, "renamed");
}

TEST(Registry, UnknownIndicesAreAnEndedProcessWithoutName) {
  Registry registry;
  registry.process(77).pid = 5;  // has no lasting effect
  EXPECT_EQ(registry.process(77).pid, 0);
  EXPECT_TRUE(std::as_const(registry).process(77).ended);
  EXPECT_TRUE(std::as_const(registry).process(0).ended);
  EXPECT_TRUE(pids_of(registry).empty());
}

TEST(Registry, FoldsTheOldestEndedProcessesAndNoRunningOnes) {
  Registry registry;
  const ProcessIndex running = registry.add_process(info_of(1));
  for (std::size_t i = 0; i < Registry::remembered + 3; ++i) {
    const ProcessIndex index = registry.add_process(info_of(static_cast<std::int32_t>(i) + 100));
    registry.retire_process(index);
    registry.retire_process(index);  // twice is once
  }
  EXPECT_EQ(registry.others().count, 3U);
  EXPECT_EQ(registry.others().words.delivered, 30U);
  EXPECT_EQ(registry.others().words.events, 12U);
  const auto pids = pids_of(registry);
  EXPECT_EQ(pids.size(), Registry::remembered + 1);
  EXPECT_EQ(pids[0], 1);
  EXPECT_EQ(pids[1], 103);
  EXPECT_EQ(registry.process(running).pid, 1);
}

TEST(Registry, CountsAProcessOnceForAllItsImages) {
  Registry registry;
  const auto add = [&](std::uint64_t start_ticks, std::uint32_t generation) {
    ProcessInfo info = info_of(7);
    info.start_ticks = start_ticks;
    info.exec_generation = generation;
    const ProcessIndex index = registry.add_process(info);
    registry.retire_process(index);
    return index;
  };
  const ProcessIndex first = add(1, 0), second = add(1, 1);
  EXPECT_TRUE(registry.process(first).replaced);
  EXPECT_FALSE(registry.process(second).replaced);
  add(2, 0);  // another process of the same pid
  EXPECT_EQ(registry.process_count(), 2u);
  for (std::size_t i = 0; i < Registry::remembered; ++i) add(3 + i, 0);
  EXPECT_EQ(registry.others().count, 2u) << "of three images";
  EXPECT_EQ(registry.others().replaced, 1u);
  EXPECT_EQ(registry.process_count(), Registry::remembered + 2);

  Registry restored;
  ProcessInfo image = info_of(7);
  restored.restore_process(1, image);
  image.exec_generation = 1;
  restored.restore_process(2, image);
  restored.restore_process(1, info_of(7));
  EXPECT_EQ(restored.process_count(), 1u);
}

TEST(Registry, FoldsProcessesOfTheUserWithMostOfThem) {
  Registry registry;
  ProcessInfo honest = info_of(1);
  honest.user = 1000;
  registry.retire_process(registry.add_process(honest));
  for (std::size_t i = 0; i < 2 * Registry::remembered; ++i) registry.retire_process(registry.add_process(info_of(2)));
  EXPECT_EQ(pids_of(registry).size(), Registry::remembered);
  EXPECT_EQ(pids_of(registry).front(), 1);
}

TEST(Registry, DoesNotFoldAProcessWhoseRingIsStillOpen) {
  Registry registry;
  const ProcessIndex owner = registry.add_process(info_of(7));
  const std::uint32_t slot = registry.add_ring({.process = owner});
  registry.retire_process(owner);
  for (std::size_t i = 0; i < Registry::remembered + 5; ++i) registry.retire_process(registry.add_process(info_of(8)));
  ASSERT_NE(registry.process_of(event_of(slot, EventKind::begin, 1)), nullptr);
  EXPECT_EQ(registry.process_of(event_of(slot, EventKind::begin, 1))->pid, 7);
  registry.remove_ring(slot);
  EXPECT_EQ(pids_of(registry).front(), 7);  // remembered from now on
  for (std::size_t i = 0; i < Registry::remembered; ++i) registry.retire_process(registry.add_process(info_of(9)));
  EXPECT_NE(pids_of(registry).front(), 7);
}

TEST(Registry, FindsRingsBySlot) {
  Registry registry;
  const ProcessIndex owner = registry.add_process(info_of(7));
  const std::uint32_t slot = registry.add_ring({.process = owner, .domains = 12});
  EXPECT_EQ(slot, 1U);
  ASSERT_NE(registry.ring(slot), nullptr);
  EXPECT_EQ(registry.ring(slot)->domains, 12U);
  EXPECT_EQ(registry.process_of(event_of(slot, EventKind::begin, 1)), &registry.process(owner));
  EXPECT_EQ(registry.process_of(event_of(0, EventKind::process, 1)), nullptr);
  EXPECT_EQ(registry.process_of(event_of(Source::max_slot, EventKind::begin, 1)), nullptr);
  registry.remove_ring(slot);
  registry.remove_ring(slot);
  EXPECT_EQ(registry.ring(slot), nullptr);
  EXPECT_EQ(registry.process_of(event_of(slot, EventKind::begin, 1)), nullptr);
  EXPECT_EQ(registry.ring(0), nullptr);
}

TEST(Registry, RingsOfUnknownProcessesAreIgnored) {
  Registry registry;
  const std::uint32_t slot = registry.add_ring({.process = 55});
  EXPECT_EQ(registry.process_of(event_of(slot, EventKind::begin, 1)), nullptr);
  registry.remove_ring(slot);
  EXPECT_EQ(registry.ring(slot), nullptr);
}

TEST(Registry, ReusesSlotsAsLateAsPossible) {
  Registry registry;
  const std::uint32_t first = registry.add_ring({}), second = registry.add_ring({});
  registry.remove_ring(second);
  registry.remove_ring(first);
  std::set<std::uint32_t> taken;
  for (std::uint32_t i = 0; i < ring_slots - 3; ++i) {
    const std::uint32_t slot = registry.add_ring({});
    EXPECT_LT(slot, ring_slots);
    EXPECT_TRUE(taken.insert(slot).second);
  }
  EXPECT_FALSE(taken.contains(0) || taken.contains(first) || taken.contains(second));
  EXPECT_EQ(registry.add_ring({}), second);  // freed first
  EXPECT_EQ(registry.add_ring({}), first);
  EXPECT_EQ(registry.add_ring({}), 0U);
}

TEST(Registry, CanBeMoved) {
  Registry source;
  const std::uint32_t slot = source.add_ring({.process = source.add_process(info_of(7))});
  const Registry registry = std::move(source);
  ASSERT_NE(registry.process_of(event_of(slot, EventKind::begin, 1)), nullptr);
  EXPECT_EQ(registry.process_of(event_of(slot, EventKind::begin, 1))->pid, 7);
}

class NameOf : public testing::Test {
 protected:
  std::string name(EventKind kind, std::uint16_t id, std::uint32_t slot) {
    return std::string{name_of(event_of(slot, kind, id), registry_, scratch_)};
  }
  std::uint32_t add(Family family) {
    ProcessInfo info = info_of(1);
    info.family = family;
    return registry_.add_ring({.process = registry_.add_process(info), .user_event_name = [](std::uint16_t id) {
                                 return id == 2 ? std::string_view{"request"} : std::string_view{};
                               }});
  }
  Registry registry_;
  std::string scratch_;
};

TEST_F(NameOf, DependsOnTheFamily) {
  const std::uint32_t old_ring = add(Family::before_5_3), new_ring = add(Family::since_5_3);
  EXPECT_EQ(name(EventKind::begin, 10, old_ring), "minor");
  EXPECT_EQ(name(EventKind::end, 10, new_ring), "major_mark");
  EXPECT_EQ(name(EventKind::counter, 17, new_ring), "major_heap_words");
  EXPECT_EQ(name(EventKind::counter, 17, old_ring), "#17");
}

TEST_F(NameOf, RingThatNamesItsProducerHasItsOwnFamily) {
  ProcessInfo info = info_of(1);
  info.family_source = FamilySource::symbols;
  const ProcessIndex process = registry_.add_process(info);
  const std::uint32_t ocamls = registry_.add_ring({.process = process});
  EXPECT_EQ(registry_.process(process).runtime, ocaml_runtime);
  const std::uint32_t librtevs =
      registry_.add_ring({.process = process, .producer = Producer{.name = "librtev", .family = Family::before_5_3}});
  EXPECT_EQ(registry_.process(process).runtime, "librtev");
  EXPECT_EQ(name(EventKind::begin, 10, librtevs), "minor");
  EXPECT_EQ(name(EventKind::begin, 10, ocamls), "major_mark");
  EXPECT_EQ(name(EventKind::counter, 17, librtevs), "#17");
  EXPECT_EQ(registry_.family_of(event_of(librtevs, EventKind::counter, 17)), Family::before_5_3);
  EXPECT_EQ(registry_.family_of(event_of(0, EventKind::process, 0)), std::nullopt);
  EXPECT_EQ(registry_.process(process).family, Family::since_5_3) << "its symbols tell of OCaml's ring";
  EXPECT_EQ(registry_.process(process).family_source, FamilySource::symbols);
}

TEST_F(NameOf, ProducerDecidesTheFamilyUnlessItIsForced) {
  const RingInfo librtevs{.producer = Producer{.name = "librtev", .family = Family::before_5_3}};
  for (const FamilySource source : {FamilySource::assumed, FamilySource::ring, FamilySource::forced}) {
    const bool forced = source == FamilySource::forced;
    ProcessInfo info = info_of(1);
    info.family_source = source;
    const ProcessIndex process = registry_.add_process(info);
    RingInfo ring = librtevs;
    ring.process = process;
    const std::uint32_t slot = registry_.add_ring(ring);
    EXPECT_EQ(name(EventKind::begin, 10, slot), forced ? "major_mark" : "minor");
    EXPECT_EQ(registry_.process(process).runtime, "librtev");
    EXPECT_EQ(registry_.process(process).family, forced ? Family::since_5_3 : Family::before_5_3);
    EXPECT_EQ(registry_.process(process).family_source, forced ? FamilySource::forced : FamilySource::producer);
  }
}

TEST_F(NameOf, CoversEveryKind) {
  const std::uint32_t ring = add(Family::since_5_3);
  EXPECT_EQ(name(EventKind::lifecycle, 6, ring), "domain_spawn");
  EXPECT_EQ(name(EventKind::lifecycle, 99, ring), "#99");
  for (const auto kind : {EventKind::user_unit, EventKind::user_int, EventKind::user_begin, EventKind::user_end,
                          EventKind::user_custom}) {
    EXPECT_EQ(name(kind, 2, ring), "request");
    EXPECT_EQ(name(kind, 3, ring), "#3");
  }
  EXPECT_EQ(name(EventKind::alloc, 0, ring), "alloc");
  EXPECT_EQ(name(EventKind::lost, 0, ring), "lost");
  EXPECT_EQ(name(EventKind::sched_switch, 0, 0), "switch");
  EXPECT_EQ(name(EventKind::wakeup, 0, 0), "wakeup");
  EXPECT_EQ(name(EventKind::process, static_cast<std::uint16_t>(ProcessAction::exec), 0), "exec");
}

TEST_F(NameOf, IsANumberIfTheRingIsUnknown) {
  EXPECT_EQ(name(EventKind::begin, 11, 5), "#11");
  EXPECT_EQ(name(EventKind::user_int, 8191, 5), "#8191");
  const std::uint32_t nameless = registry_.add_ring({});
  EXPECT_EQ(name(EventKind::user_int, 1, nameless), "#1");
}

TEST(Thread, CommStopsAtTheFirstNul) {
  Thread thread{};
  EXPECT_EQ(thread.comm(), "");
  thread.comm_bytes = {'a', 'b', '\0', 'c'};
  EXPECT_EQ(thread.comm(), "ab");
  thread.comm_bytes.fill('x');
  EXPECT_EQ(thread.comm(), std::string(16, 'x'));
}

TEST(Records, EveryValueHasItsName) {
  std::set<std::string_view> kinds;
  for (std::size_t kind = 0; kind < event_kind_count; ++kind) kinds.insert(to_string(static_cast<EventKind>(kind)));
  EXPECT_EQ(kinds.size(), event_kind_count);
  EXPECT_FALSE(kinds.contains("unknown"));
  EXPECT_EQ(to_string(EventKind::sched_switch), "switch");
  EXPECT_EQ(to_string(static_cast<EventKind>(200)), "unknown");
  EXPECT_EQ(to_string(ProcessAction::exit), "exit");
  EXPECT_EQ(to_string(ThreadRole::backup), "backup");
  EXPECT_EQ(to_string(LeftState::uninterruptible), "uninterruptible");
  EXPECT_EQ(to_string(RingState::truncated), "truncated");
  EXPECT_EQ(to_string(RingState::probed), "probed");
  EXPECT_EQ(to_string(RingState::ended), "ended");
  EXPECT_EQ(to_string(ProcessAction::probe), "probe");
  EXPECT_EQ(to_string(LossReason::overflow), "overflow");
  EXPECT_EQ(to_string(LossReason::unprobed), "unprobed");
  EXPECT_EQ(to_string(FamilySource::ring), "ring");
  EXPECT_EQ(to_string(Family::before_5_3), "5.0-5.2");
  EXPECT_EQ(to_string(Family::since_5_3), "5.3+");
}

TEST(RingState, OfAnEndedProcessDependsOnItsRing) {
  EXPECT_EQ(after_end(RingState::active), RingState::ended);
  EXPECT_EQ(after_end(RingState::paused), RingState::ended);
  for (const RingState state : {RingState::none, RingState::stopped, RingState::truncated, RingState::shared,
                                RingState::probed, RingState::ended})
    EXPECT_EQ(after_end(state), state);
}

}  // namespace
}  // namespace rtev
