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
using ::testing::Pair;

using namespace std::chrono_literals;

using Times = std::vector<std::uint64_t>;

/// Keeps what it is given.
class Collector final : public Sink {
 public:
  void header(const RunHeader&) override { ++headers; }
  void consume(const Batch& batch, const Registry&) override {
    ++batches;
    for (const Event& event : batch.events()) {
      times.push_back(event.time);
      const auto bytes = batch.payload(event);
      if (!bytes.empty()) payloads.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (event.kind == EventKind::sched_switch) change = batch.payload_as<SchedSwitch>(event).value();
    }
  }
  void flush() override { ++flushes; }
  void summary(const RunSummary& summary, const Registry&) override {
    ++summaries;
    last = summary;
  }

  Times times;
  std::vector<std::string> payloads;
  SchedSwitch change{};  ///< the last one
  RunSummary last;
  int headers = 0, batches = 0, flushes = 0, summaries = 0;
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

  /// Times of the events that a list selects, without the loss, which must always be there.
  Times shown(std::string_view list) {
    auto filter = EventFilter::parse(list);
    if (!filter) {
      ADD_FAILURE() << filter.error().message();
      return {};
    }
    Collector collector;
    FilterSink sink(collector, std::move(*filter));
    sink.consume(events.batch(), world.registry);
    EXPECT_EQ(std::erase(collector.times, 10u), 1u) << "what was lost is always shown";
    return collector.times;
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
  EXPECT_THAT(shown("unknown"), IsEmpty());
}

TEST_F(Filter, WildcardsAndLists) {
  EXPECT_THAT(shown("minor*"), ElementsAre(1, 2, 3));
  EXPECT_THAT(shown("*e*t*"), ElementsAre(5, 6, 8));
  EXPECT_THAT(shown("re?uest,ring_st[ao]*"), ElementsAre(4, 5, 8));
  EXPECT_THAT(shown("[odd"), ElementsAre(7)) << "a name may look like a pattern";
}

TEST_F(Filter, MatchesNamesNotNumbers) {
  auto filter = EventFilter::parse("request");
  ASSERT_TRUE(filter);
  const Batch batch = events.batch();
  const Event& named_later = batch.events()[6];
  EXPECT_FALSE(filter->accepts(named_later, world.registry));
  world.user_names[3] = "request";  // as a program that registers the name after its first event
  EXPECT_TRUE(filter->accepts(named_later, world.registry));
}

TEST_F(Filter, TablesOfFamiliesAreNotMixed) {
  ProcessInfo old = World::default_info();
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

TEST_F(Filter, ManyNamesAreMatchedBeyondTheCache) {
  auto filter = EventFilter::parse("*7");
  ASSERT_TRUE(filter);
  const Batch batch = events.batch();
  for (int i = 0; i < 200'000; ++i) {
    world.user_names[1] = "name " + std::to_string(i);
    ASSERT_EQ(filter->accepts(batch.events()[4], world.registry), i % 10 == 7) << i;
  }
}

TEST_F(Filter, TellsWhichWordsMatchedNothingAndWhatThereWas) {
  const auto filtered = [this](std::string_view list) {
    auto filter = EventFilter::parse(list);
    for (const Event& event : events.batch().events()) filter->accepts(event, world.registry);
    return *filter;
  };
  EXPECT_THAT(filtered("user,request,minor*").unmatched(), IsEmpty());
  EXPECT_THAT(filtered("user,process").unmatched(), IsEmpty()) << "of kinds one match is enough";
  EXPECT_THAT(filtered("process").unmatched(), ElementsAre("process"));
  EXPECT_THAT(filtered("user,re*st,srever,no*").unmatched(), ElementsAre("srever", "no*"));
  const EventFilter none = filtered("usr");
  EXPECT_THAT(none.unmatched(), ElementsAre("usr"));
  EXPECT_THAT(none.others().at("user"), ElementsAre("[odd", "queue depth", "request"));
  EXPECT_THAT(none.others().at("counter"), ElementsAre("minor_allocated"));
  EXPECT_EQ(none.others().count("wakeup"), 0U);
}

TEST_F(Filter, RemembersFewNames) {
  auto filter = EventFilter::parse("usr");
  ASSERT_TRUE(filter);
  const Batch batch = events.batch();
  for (int i = 0; i < 1'000; ++i) {
    world.user_names[1] = "name " + std::to_string(i);
    filter->accepts(batch.events()[4], world.registry);
  }
  EXPECT_EQ(filter->others().at("user").size(), EventFilter::max_others);
}

TEST_F(Filter, PayloadsAndCallsPassThrough) {
  auto filter = EventFilter::parse("request");
  ASSERT_TRUE(filter);
  Collector collector;
  FilterSink sink(collector, std::move(*filter));
  sink.consume(events.batch(), world.registry);
  EXPECT_EQ(collector.payloads.front(), "payload");
  Events none(world.slot);
  none.add(1, EventKind::begin, phase_minor);
  sink.consume(none.batch(), world.registry);
  EXPECT_EQ(collector.batches, 1) << "no empty batches";
  sink.flush();
  sink.summary({}, world.registry);
  EXPECT_EQ(collector.flushes, 1);
  EXPECT_EQ(collector.summaries, 1);
}

TEST_F(Filter, SummariesCountSelectedEvents) {
  auto filter = EventFilter::parse("request");
  ASSERT_TRUE(filter);
  Collector collector;
  FilterSink sink(collector, std::move(*filter));
  sink.consume(events.batch(), world.registry);
  RunSummary all{.late = 99, .forced = 3};
  all.events.fill(99);
  sink.summary(all, world.registry);
  std::uint64_t counted = 0;
  for (const std::uint64_t count : collector.last.events) counted += count;
  EXPECT_EQ(counted, collector.times.size());
  EXPECT_EQ(collector.last.late, 0U);
  EXPECT_EQ(collector.last.forced, 3U) << "of the run";
}

TEST(FilterList, EmptyPatternsAreRefused) {
  for (const std::string_view list : {"", ",", "phase,", ",phase", "phase,,user"}) {
    const auto filter = EventFilter::parse(list);
    ASSERT_FALSE(filter) << list;
    EXPECT_THAT(filter.error().hint, HasSubstr("--events"));
  }
}

class SelectionTest : public ::testing::Test {
 protected:
  SelectionTest() {
    ProcessInfo info = World::default_info();
    info.pid = 77;
    info.comm = "batch-1";
    other = world.registry.add_process(std::move(info));
    other_slot = world.add_ring(other);
  }

  Times select(SelectionOptions options) {
    const bool unlimited = options.window.is_whole();
    Selection selection(collector, std::move(options));
    selection.header({.start_ns = 100});
    const auto feed = [&](const Events& events) { selection.consume(events.batch(), world.registry); };
    feed(Events(0)
             .add_record(110, EventKind::process, ProcessRecord{world.process, 0, 0})
             .add_record(111, EventKind::process, ProcessRecord{other, 0, 0}));
    feed(Events(world.slot).add(120, EventKind::begin, phase_minor));
    feed(Events(other_slot).add(121, EventKind::begin, phase_minor));
    const Thread ours = make_thread(4242, 4242, "server", true), theirs = make_thread(77, 78, "batch-1", true),
                 idle = make_thread(0, 0, "swapper", false);
    feed(Events(0)
             .add_record(130, EventKind::sched_switch,
                         SchedSwitch{.cpu = 0, .state = LeftState::sleeping, .prev = ours, .next = idle})
             .add_record(131, EventKind::sched_switch,
                         SchedSwitch{.cpu = 0, .state = LeftState::sleeping, .prev = idle, .next = theirs})
             .add_record(132, EventKind::wakeup, Wakeup{0, ours, theirs})
             .add_record(133, EventKind::wakeup, Wakeup{0, theirs, ours})
             .add_record(150, EventKind::lost, Loss{1, 150, 160}, static_cast<std::uint16_t>(LossReason::dropped),
                         first_sched_stream));
    if (unlimited && !selection.is_empty()) {
      EXPECT_EQ(std::erase(collector.times, 150U), 1U) << "dropped events can be of any process";
    }
    selection.summary({.end_ns = 200}, world.registry);
    unmatched_pids = selection.unmatched_pids();
    unmatched_globs = selection.unmatched_globs();
    processes = selection.processes();
    missed_run = selection.missed_run();
    return std::exchange(collector.times, {});
  }

  World world;
  ProcessIndex other = 0;
  std::uint32_t other_slot = 0;
  Collector collector;
  std::vector<std::int32_t> unmatched_pids;
  std::vector<std::string> unmatched_globs;
  Selection::Processes processes;
  std::optional<RunSpan> missed_run;
};

TEST_F(SelectionTest, EverythingByDefault) {
  EXPECT_THAT(select({}), ElementsAre(110, 111, 120, 121, 130, 131, 132, 133));
  EXPECT_EQ(collector.last.end_ns, 200u);
}

TEST_F(SelectionTest, SelectsByPid) {
  EXPECT_THAT(select({.pids = {4242}}), ElementsAre(110, 120, 130, 132));
}

TEST_F(SelectionTest, AnalysesSeeSwitchesOfOtherProcesses) {
  EXPECT_THAT(select({.pids = {4242}, .for_analysis = true}), ElementsAre(110, 120, 130, 131, 132, 133));
  EXPECT_EQ(collector.last.events[static_cast<std::size_t>(EventKind::sched_switch)], 2U);
  EXPECT_EQ(collector.last.events[static_cast<std::size_t>(EventKind::begin)], 1U);
}

TEST_F(SelectionTest, AllThreadsAreSelectedIfAllWereRecorded) {
  const Thread hog = make_thread(99, 99, "hog", false), idle = make_thread(0, 0, "swapper", false),
               ours = make_thread(4242, 4242, "server", true), theirs = make_thread(77, 78, "batch-1", true);
  Selection selection(collector, {.pids = {4242}});
  selection.header({.start_ns = 100});
  const auto switches = [&](std::uint64_t time, const Thread& prev, const Thread& next) {
    selection.consume(Events(0)
                          .add_record(time, EventKind::sched_switch,
                                      SchedSwitch{.cpu = 0, .state = LeftState::preempted, .prev = prev, .next = next})
                          .batch(),
                      world.registry);
  };
  selection.consume(Events(0).add_record(110, EventKind::process, ProcessRecord{world.process, 0, 0}).batch(),
                    world.registry);
  switches(120, idle, theirs);
  switches(130, hog, idle);
  switches(140, idle, theirs);
  switches(150, theirs, ours);
  EXPECT_THAT(collector.times, ElementsAre(110, 130, 140, 150));
}

TEST_F(SelectionTest, ThreadsOfOtherProcessesAreNotSelected) {
  const Thread ours = make_thread(4242, 4242, "server", true), theirs = make_thread(77, 78, "batch-1", true);
  const auto tracked = [&](SelectionOptions options) {
    Selection selection(collector, std::move(options));
    selection.header({.start_ns = 100});
    selection.consume(
        Events(0)
            .add_record(110, EventKind::process, ProcessRecord{world.process, 0, 0})
            .add_record(120, EventKind::sched_switch,
                        SchedSwitch{.cpu = 0, .state = LeftState::preempted, .prev = ours, .next = theirs})
            .batch(),
        world.registry);
    return std::pair(collector.change.prev.tracked, collector.change.next.tracked);
  };
  EXPECT_EQ(tracked({.pids = {4242}}), std::pair(true, false));
  EXPECT_EQ(collector.change.next.pid, 77);
  EXPECT_EQ(tracked({.pids = {4242}, .for_analysis = true}), std::pair(true, true));
  EXPECT_EQ(tracked({}), std::pair(true, true));
}

TEST_F(SelectionTest, SummariesCountSelectedEvents) {
  select({.pids = {4242}});
  EXPECT_EQ(collector.last.events[static_cast<std::size_t>(EventKind::sched_switch)], 1U);
  EXPECT_EQ(collector.last.events[static_cast<std::size_t>(EventKind::process)], 1U);
  select({});
  EXPECT_EQ(collector.last.events[static_cast<std::size_t>(EventKind::sched_switch)], 0U) << "as it was";
}

TEST_F(SelectionTest, SelectsByName) {
  EXPECT_THAT(select({.name_globs = {"batch-*"}}), ElementsAre(111, 121, 131, 133));
}

TEST_F(SelectionTest, TellsWhichOptionsMatchedNothing) {
  select({.pids = {4242, 5}, .name_globs = {"server", "leaky", "batch-*"}});
  EXPECT_THAT(unmatched_pids, ElementsAre(5));
  EXPECT_THAT(unmatched_globs, ElementsAre("leaky"));
  EXPECT_THAT(processes, ElementsAre(Pair("batch-1", 77), Pair("server", 4242)));
}

TEST_F(SelectionTest, WhereNothingMatchesThereIsNoReport) {
  EXPECT_THAT(select({.name_globs = {"leaky"}, .for_analysis = true}), testing::IsEmpty());
  EXPECT_EQ(collector.summaries, 0) << "a report would say that there were no pauses";
  EXPECT_EQ(collector.headers, 0) << "nor are there rows of switches of others before the error";
  Selection selection(collector, {.name_globs = {"leaky"}});
  selection.header({.start_ns = 100});
  selection.consume(Events(other_slot).add(121, EventKind::begin, phase_minor).batch(), world.registry);
  selection.summary({.end_ns = 200}, world.registry);
  EXPECT_EQ(collector.headers, 0);
  EXPECT_EQ(collector.summaries, 0);
  select({.name_globs = {"batch-*"}});
  EXPECT_EQ(collector.headers, 1);
  EXPECT_EQ(collector.summaries, 1);
}

TEST_F(SelectionTest, TellsWhetherTheWindowMissesTheRun) {
  const auto misses = [this](const Window& window) {
    select({.window = window});
    return missed_run.has_value();
  };
  EXPECT_FALSE(misses({.from = TimePoint{.time = 100ns}}));
  EXPECT_TRUE(misses({.from = TimePoint{.time = 101ns}}));
  EXPECT_EQ(missed_run->start_ns, 100u);
  EXPECT_EQ(missed_run->end_ns, 200u);
  EXPECT_TRUE(misses({.around = TimePoint{.time = 1s}}));
  const int before = collector.summaries;
  select({.window = {.from = TimePoint{.time = 101ns}}, .for_analysis = true});
  EXPECT_TRUE(missed_run);
  EXPECT_EQ(collector.summaries, before) << "an analysis would report of nothing";
  EXPECT_FALSE(misses({.to = TimePoint{.time = 0ns}}));
  EXPECT_FALSE(misses({}));
}

TEST_F(SelectionTest, DurationIsCountedFromTheStart) {
  EXPECT_THAT(select({.window = {.duration = 20ns}}), ElementsAre(110, 111, 120));
  EXPECT_EQ(collector.last.end_ns, 120u);
}

TEST_F(SelectionTest, SelectsAPart) {
  const auto at = [](std::chrono::nanoseconds time) { return TimePoint{.time = time}; };
  EXPECT_THAT(select({.window = {.from = at(20ns), .to = at(31ns)}}), ElementsAre(120, 121, 130, 131));
  EXPECT_EQ(collector.last.start_ns, 120u);
  EXPECT_EQ(collector.last.end_ns, 131u);
  EXPECT_THAT(select({.window = {.from = at(20ns), .duration = 10ns}}), ElementsAre(120, 121, 130));
}

TEST_F(SelectionTest, AnalysesLearnWhichProcessesThereWereBeforeThePart) {
  const Window window{.from = TimePoint{.time = 20ns}, .to = TimePoint{.time = 21ns}};
  EXPECT_THAT(select({.window = window, .for_analysis = true}), ElementsAre(110, 111, 120, 121));
}

}  // namespace
}  // namespace rtev::test
