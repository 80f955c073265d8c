// SPDX-License-Identifier: MIT
#include "stream/filter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Remembers the times of the events it was given, and their payloads.
class Recorder final : public Sink {
 public:
  void header(const RunHeader&) override {}
  void consume(const Batch& batch, const Registry&) override {
    ++batches;
    for (const Event& event : batch.events()) {
      times.push_back(event.time);
      const auto bytes = batch.payload(event);
      if (!bytes.empty()) payloads.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  void flush() override { ++flushes; }
  void summary(const RunSummary& summary, const Registry&) override {
    ++summaries;
    summary_of = summary;
  }

  std::vector<std::uint64_t> times;
  std::vector<std::string> payloads;
  RunSummary summary_of;
  int batches = 0, flushes = 0, summaries = 0;
};

class Filter : public ::testing::Test {
 protected:
  Filter() {
    world.user_names = {{1, "request"}, {2, "queue depth"}, {3, "[odd"}};
    events.add(1, EventKind::begin, phase_minor)
        .add(2, EventKind::end, phase_minor_local_roots)
        .add(3, EventKind::counter, counter_minor_allocated, 5)
        .add(4, Lifecycle::ring_start)
        .add(5, EventKind::user_begin, 1)
        .add(6, EventKind::user_int, 2, 7)
        .add(7, EventKind::user_unit, 3)
        .add_bytes(8, EventKind::user_custom, "payload", 1)
        .add(9, EventKind::begin, unknown_phase)
        .add_record(10, EventKind::lost, Loss{.words = 3, .from_ns = 1, .to_ns = 2})
        .add_record(11, EventKind::wakeup, Wakeup{})
        .add_record(12, EventKind::sched_switch, SchedSwitch{})
        .add(13, EventKind::alloc);
  }

  /// Times of the events that a list lets through, but for the loss, which must always be there.
  std::vector<std::uint64_t> shown(std::string_view list) {
    auto filter = EventFilter::parse(list);
    if (!filter) {
      ADD_FAILURE() << filter.error().message();
      return {};
    }
    Recorder recorder;
    FilterSink sink(recorder, std::move(*filter));
    sink.consume(events.batch(), world.registry);
    EXPECT_EQ(std::erase(recorder.times, 10u), 1u) << "what was lost is always shown";
    return recorder.times;
  }

  World world;
  Events events{world.slot};
};

TEST_F(Filter, Kinds) {
  EXPECT_THAT(shown("phase"), ElementsAre(1, 2, 9));
  EXPECT_THAT(shown("counter"), ElementsAre(3));
  EXPECT_THAT(shown("alloc"), ElementsAre(13));
  EXPECT_THAT(shown("lifecycle"), ElementsAre(4));
  EXPECT_THAT(shown("user"), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(shown("switch"), ElementsAre(12));
  EXPECT_THAT(shown("wakeup"), ElementsAre(11));
  EXPECT_THAT(shown("process"), IsEmpty());
  EXPECT_THAT(shown("switch,lifecycle"), ElementsAre(4, 12));
}

TEST_F(Filter, NamesMatchExactly) {
  EXPECT_THAT(shown("minor"), ElementsAre(1));
  EXPECT_THAT(shown("minor_allocated"), ElementsAre(3));
  EXPECT_THAT(shown("ring_start"), ElementsAre(4));
  EXPECT_THAT(shown("request"), ElementsAre(5, 8));
  EXPECT_THAT(shown("queue depth"), ElementsAre(6));
  EXPECT_THAT(shown("nobody's"), IsEmpty());
}

TEST_F(Filter, WildcardsAndLists) {
  EXPECT_THAT(shown("minor*"), ElementsAre(1, 2, 3));
  EXPECT_THAT(shown("*e*t*"), ElementsAre(5, 6, 8));
  EXPECT_THAT(shown("re?uest,ring_st[ao]*"), ElementsAre(4, 5, 8));
  EXPECT_THAT(shown("[odd"), ElementsAre(7)) << "a name may look like a pattern";
}

TEST_F(Filter, VerdictsAreOnNamesNotOnNumbers) {
  auto filter = EventFilter::parse("request");
  ASSERT_TRUE(filter);
  const Batch batch = events.batch();
  const Event& named_later = batch.events()[6];
  EXPECT_FALSE(filter->accepts(named_later, world.registry));
  world.user_names[3] = "request";  // as a program that registers the name after its first event
  EXPECT_TRUE(filter->accepts(named_later, world.registry));
}

TEST_F(Filter, TablesOfFamiliesAreNotMixed) {
  ProcessInfo old = World::default_facts();
  old.family = Family::before_5_3;
  const std::uint32_t slot = world.add_ring(world.registry.add_process(old));
  Events both(slot);
  both.add(1, EventKind::begin, 10).add(2, EventKind::begin, 11);
  auto filter = EventFilter::parse("minor");
  ASSERT_TRUE(filter);
  EXPECT_TRUE(filter->accepts(events.batch().events()[0], world.registry)) << "11 since 5.3";
  EXPECT_TRUE(filter->accepts(both.batch().events()[0], world.registry)) << "10 before";
  EXPECT_FALSE(filter->accepts(both.batch().events()[1], world.registry));
}

TEST_F(Filter, EndlessNamesDoNotHurt) {
  auto filter = EventFilter::parse("*7");
  ASSERT_TRUE(filter);
  const Batch batch = events.batch();
  for (int i = 0; i < 200'000; ++i) {
    world.user_names[1] = "name " + std::to_string(i);
    ASSERT_EQ(filter->accepts(batch.events()[4], world.registry), i % 10 == 7) << i;
  }
}

TEST_F(Filter, PayloadsAndCallsPassThrough) {
  auto filter = EventFilter::parse("request");
  ASSERT_TRUE(filter);
  Recorder recorder;
  FilterSink sink(recorder, std::move(*filter));
  sink.consume(events.batch(), world.registry);
  EXPECT_EQ(recorder.payloads.front(), "payload");
  Events none(world.slot);
  none.add(1, EventKind::begin, phase_minor);
  sink.consume(none.batch(), world.registry);
  EXPECT_EQ(recorder.batches, 1) << "nothing to show is not shown";
  sink.flush();
  sink.summary({}, world.registry);
  EXPECT_EQ(recorder.flushes, 1);
  EXPECT_EQ(recorder.summaries, 1);
}

TEST_F(Filter, SummariesCountWhatWasLetThrough) {
  auto filter = EventFilter::parse("request");
  ASSERT_TRUE(filter);
  Recorder recorder;
  FilterSink sink(recorder, std::move(*filter));
  sink.consume(events.batch(), world.registry);
  RunSummary all{.late = 99, .forced = 3};
  all.events.fill(99);
  sink.summary(all, world.registry);
  std::uint64_t counted = 0;
  for (const std::uint64_t count : recorder.summary_of.events) counted += count;
  EXPECT_EQ(counted, recorder.times.size());
  EXPECT_EQ(recorder.summary_of.late, 0U);
  EXPECT_EQ(recorder.summary_of.forced, 3U) << "of the run";
}

TEST(FilterList, EmptyWordsAreRefused) {
  for (const std::string_view list : {"", ",", "phase,", ",phase", "phase,,user"}) {
    const auto filter = EventFilter::parse(list);
    ASSERT_FALSE(filter) << list;
    EXPECT_THAT(filter.error().hint, HasSubstr("--events"));
  }
}

}  // namespace
}  // namespace rtev::test
