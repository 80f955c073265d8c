// SPDX-License-Identifier: MIT
#include "flight/flight_recorder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "unit/flight/flight_fixture.hpp"
#include "unit/flight/flight_times.hpp"

namespace rtev::flight {
namespace {

using test::Events;

/// A process whose stream the test writes.
class FlightRecorderTest : public ::testing::Test {
 protected:
  void begin(RecorderOptions options, DumpDirectory::Options directory = {.max_bytes = 1 << 30, .min_free = {}}) {
    recorder_.emplace(std::move(options), directory);
    (*recorder_)->header({.host = "host", .start_ns = now_, .start_realtime_ns = 1});
  }
  void consume(const Events& events) {
    for (const Event& event : events.batch().events()) {
      now_ = std::max(now_, event.time);
      ++events_[static_cast<std::size_t>(event.kind)];
    }
    (*recorder_)->consume(events.batch(), world_.registry);
    pass(0);
  }
  /// Time without events.
  void pass(std::uint64_t ns) {
    for (const std::uint64_t end = now_ + ns; true; now_ = std::min(end, now_ + 20 * ms)) {
      (*recorder_)->advance(now_, world_.registry);
      if ((*recorder_)->wants_checkpoint()) (*recorder_)->checkpoint(so_far(), world_.registry);
      if (now_ >= end) break;
    }
  }
  void pause(std::uint64_t ns) {
    consume(Events(world_.slot).add(now_ + 1, EventKind::begin, test::phase_major));
    consume(Events(world_.slot).add(now_ + ns, EventKind::end, test::phase_major));
  }
  void end() { (*recorder_)->summary(so_far(), world_.registry); }
  RunSummary so_far() const {
    RunSummary summary;
    summary.end_ns = now_;
    summary.events = events_;
    return summary;
  }
  RecorderOptions options(const std::vector<std::string>& conditions) {
    RecorderOptions options = keep(10 * second);
    for (const std::string& text : conditions) options.conditions.push_back(parse_condition(text).value());
    options.after_ns = second;
    return options;
  }

  test::World world_;
  std::uint64_t now_ = 100 * second;
  decltype(RunSummary::events) events_{};  ///< by kind
  std::optional<Recorder> recorder_;
};

TEST_F(FlightRecorderTest, ATriggerThatStaysTrueMakesOneDump) {
  begin(options({"pause>50ms"}));
  pass(11 * second);
  for (int i = 0; i < 20; ++i) {
    pause(60 * ms);
    pass(3 * second);
  }
  end();
  ASSERT_EQ(recorder_->results().size(), 1u);
  const DumpResult& result = recorder_->results().front();
  EXPECT_FALSE(result.error);
  EXPECT_EQ(result.cause.what, "pause>50ms");
  EXPECT_EQ(result.cause.value, "60.0ms");
  EXPECT_EQ(result.cause.program, "server");
  EXPECT_EQ(result.cause.pid, 4242);
  EXPECT_THAT(result.path, ::testing::HasSubstr("-pause-4242.fxt.gz"));
  EXPECT_THAT(result.verdict, ::testing::HasSubstr("60.0ms pause of server/4242"));
  const RecorderFigures figures = (*recorder_)->figures();
  EXPECT_EQ(figures.written, 1u);
  EXPECT_EQ(figures.suppressed[static_cast<std::size_t>(Suppressed::repeated)], 5u) << "once in ten seconds";
}

TEST_F(FlightRecorderTest, NothingIsDumpedBeforeItIsArmed) {
  begin(options({"pause>50ms"}));
  pause(60 * ms);
  pass(second);
  end();
  EXPECT_TRUE(recorder_->results().empty());
  EXPECT_EQ((*recorder_)->figures().suppressed[static_cast<std::size_t>(Suppressed::not_armed)], 1u);
}

TEST_F(FlightRecorderTest, AnotherRecorderMakesTheDumpUntilItIsReleased) {
  begin(options({"pause>50ms"}));
  (*recorder_)->hold();
  pass(11 * second);
  pause(60 * ms);
  pass(second);
  (*recorder_)->take_over_at(now_, world_.registry);
  pause(60 * ms);  // trouble that goes on: the other one has a dump of it
  pass(60 * second);
  EXPECT_TRUE(recorder_->results().empty());
  pause(60 * ms);
  pass(5 * second);
  end();
  EXPECT_EQ(recorder_->results().size(), 1u);
}

TEST_F(FlightRecorderTest, AnotherConditionExtendsTheDump) {
  begin(options({"pause>50ms", "pause>90ms"}));
  pass(11 * second);
  pause(60 * ms);
  pass(800 * ms);
  const std::uint64_t joined_at = now_;
  pause(100 * ms);
  pass(5 * second);
  end();
  ASSERT_EQ(recorder_->results().size(), 1u);
  EXPECT_EQ((*recorder_)->figures().joined, 1u);
  const auto read = read_dump(recorder_->results().front().path);
  const SeenStream& dump = *read;
  EXPECT_GE(dump.end.end_ns, joined_at + second);
  EXPECT_EQ(dump.facts.pauses.size(), 2u);
}

TEST_F(FlightRecorderTest, APauseThatBeganBeforeTheWindowIsWhole) {
  world_.user_names[7] = "request";
  begin(options({}));
  consume(Events(world_.slot)
              .add_record(now_, EventKind::process, ProcessRecord{.process = world_.process, .peer = 0, .detail = 0}));
  consume(Events(world_.slot)
              .add(now_ + 1, EventKind::user_begin, 7)
              .add(now_ + 2, EventKind::begin, test::phase_major)
              .add(now_ + 3, EventKind::counter, 5, 42));
  const std::uint64_t began = now_ - 1;
  pass(30 * second);
  consume(Events(world_.slot).add(now_ + 1, EventKind::end, test::phase_major).add(now_ + 2, EventKind::user_end, 7));
  auto asked = (*recorder_)->request_dump("snap");
  pass(second);
  end();
  const auto read = read_dump(asked.get().path);
  const SeenStream& dump = *read;
  EXPECT_GT(dump.run.start_ns, began + 15 * second);
  ASSERT_EQ(dump.facts.pauses.size(), 1u);
  EXPECT_EQ(std::get<0>(dump.facts.pauses[0]), began);
  ASSERT_EQ(dump.facts.spans.size(), 1u);
  EXPECT_EQ(std::get<0>(dump.facts.spans[0]), began - 1);
  EXPECT_EQ(dump.facts.counters.begin()->second, 42u);
  EXPECT_EQ(std::ranges::count(dump.events, "request", &SeenEvent::name), 2);
}

TEST_F(FlightRecorderTest, RequestsJoinTheDumpInHand) {
  begin(options({}));
  auto first = (*recorder_)->request_dump("snap");
  auto second_one = (*recorder_)->request_dump("snap");
  pass(2 * second);
  end();
  EXPECT_EQ(first.get().path, second_one.get().path);
  EXPECT_EQ(recorder_->results().size(), 1u);
  EXPECT_TRUE((*recorder_)->request_dump("snap").get().error);  // it has ended
}

TEST_F(FlightRecorderTest, SaysWhyADumpCannotBeWritten) {
  begin(options({"pause>50ms"}), {.max_bytes = 1 << 30, .min_free = {.share = 1}});
  pass(11 * second);
  pause(60 * ms);
  pass(5 * second);
  end();
  ASSERT_EQ(recorder_->results().size(), 1u);
  EXPECT_TRUE(recorder_->results().front().error);
  EXPECT_EQ((*recorder_)->figures().failed, 1u);
  EXPECT_TRUE(recorder_->files().empty());
}

TEST_F(FlightRecorderTest, SizeGoesBeforeAge) {
  begin({.history = {.keep_ns = 1000 * second, .max_bytes = 2 << 20}});
  for (int i = 0; i < 200; ++i) {
    Events events(world_.slot);
    for (std::uint64_t k = 1; k <= 1000; ++k) events.add(now_ + k, EventKind::user_int, 1, k);
    consume(events);
    EXPECT_LE((*recorder_)->figures().kept_bytes, std::size_t{2} << 20);
  }
  EXPECT_GE((*recorder_)->figures().kept_bytes, std::size_t{1800} << 10);
}

TEST_F(FlightRecorderTest, WhoeverIsLoudShortensOnlyHisHistory) {
  constexpr std::size_t max_bytes = std::size_t{2} << 20;
  begin({.history = {.keep_ns = 1000 * second, .max_bytes = max_bytes}});
  ProcessInfo info = test::World::default_info();
  info.pid = 5000;
  info.comm = "loud";
  info.user = 1000;
  const ProcessIndex loud = world_.registry.add_process(info);
  const std::uint32_t slot = world_.add_ring(loud);
  const auto add = [&](ProcessIndex process, const Events& events) {
    world_.registry.process(process).words.events += events.batch().events().size();
    consume(events);
  };
  const auto found = [&](ProcessIndex process) {
    consume(Events(0).add_record(now_, EventKind::process, ProcessRecord{process, 0, 0},
                                 static_cast<std::uint16_t>(ProcessAction::found)));
  };
  found(world_.process);
  found(loud);
  const std::uint64_t pause_begin = now_ + 1;
  add(loud, Events(slot).add(pause_begin, EventKind::begin, test::phase_major));
  constexpr std::uint64_t turns = 400, events_of_turn = 1000;
  std::uint64_t number = 0;
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    add(world_.process, Events(world_.slot).add(now_ + 1, EventKind::user_int, 1, turn));
    Events events(slot);
    for (std::uint64_t k = 1; k <= events_of_turn; ++k) events.add(now_ + k, EventKind::user_int, 1, number++);
    add(loud, events);
    EXPECT_LE((*recorder_)->figures().kept_bytes, max_bytes);
  }
  add(loud, Events(slot).add(now_ + 1, EventKind::end, test::phase_major));
  auto asked = (*recorder_)->request_dump("snap");
  pass(second);
  end();
  const auto read = read_dump(asked.get().path);
  const SeenStream& dump = *read;
  std::vector<std::uint64_t> of_quiet, of_loud;
  for (const SeenEvent& event : dump.events)
    if (event.kind == EventKind::user_int) (event.comm == "loud" ? of_loud : of_quiet).push_back(event.value);
  ASSERT_EQ(of_quiet.size(), turns);
  for (std::uint64_t turn = 0; turn < turns; ++turn) EXPECT_EQ(of_quiet[turn], turn);
  // What the other one left is his, and the newest.
  EXPECT_GT(of_loud.size() * sizeof(Event), max_bytes / 2);
  EXPECT_LT(of_loud.size(), number);
  for (std::size_t i = 0; i < of_loud.size(); ++i) EXPECT_EQ(of_loud[i], number - of_loud.size() + i);
  // As if the tracer had begun to look at him there.
  ASSERT_EQ(dump.facts.pauses.size(), 1u);
  EXPECT_EQ(std::get<0>(dump.facts.pauses.front()), pause_begin);
  EXPECT_EQ(dump.processes.at(loud).words.events, of_loud.size() + 1) << "and the end of the pause";
  EXPECT_EQ(dump.processes.at(world_.process).words.events, turns);
  EXPECT_EQ(std::accumulate(dump.end.events.begin(), dump.end.events.end(), std::uint64_t{0}), dump.events.size());
}

TEST_F(FlightRecorderTest, DumpsAreSharedByUsers) {
  RecorderOptions wanted = options({"lost"});
  wanted.limits.max_dumps = 4;
  wanted.after_ns = 0;
  begin(wanted);
  pass(11 * second);
  const auto lose = [&](const std::string& comm, std::uint32_t user) {
    ProcessInfo info = test::World::default_info();
    info.comm = comm;
    info.user = user;
    const std::uint32_t slot = world_.add_ring(world_.registry.add_process(info));
    consume(Events(slot).add_record(now_ + 1, EventKind::lost, Loss{.words = 1, .from_ns = 0, .to_ns = now_ + 1},
                                    static_cast<std::uint16_t>(LossReason::overwritten)));
    pass(100 * ms);
  };
  for (int i = 0; i < 10; ++i) lose("name" + std::to_string(i), 1000);
  lose("name0", 0);
  end();
  EXPECT_EQ((*recorder_)->figures().written, 3u);
  EXPECT_EQ((*recorder_)->figures().suppressed[static_cast<std::size_t>(Suppressed::max_dumps)], 8u);
}

TEST_F(FlightRecorderTest, KeepsNamesOfProcessesThatAreGone) {
  world_.user_names[3] = "work";
  begin(options({}));
  for (int i = 0; i < 6000; ++i) {
    ProcessInfo info = test::World::default_info();
    info.comm = test::hostile_strings()[static_cast<std::size_t>(i) % test::hostile_strings().size()];
    info.pid = 10'000 + i;
    const ProcessIndex process = world_.registry.add_process(info);
    const std::uint32_t slot = world_.add_ring(process);
    consume(Events(slot).add(now_ + 1, EventKind::user_unit, 3));
    world_.registry.process(process).ended = true;
    world_.registry.remove_ring(slot);
    world_.registry.retire_process(process);
  }
  auto asked = (*recorder_)->request_dump("snap");
  pass(second);
  end();
  const auto read = read_dump(asked.get().path);
  const SeenStream& dump = *read;
  ASSERT_EQ(dump.events.size(), 6000u);
  for (std::size_t i = 0; i < dump.events.size(); ++i) {
    EXPECT_EQ(dump.events[i].name, "work");
    EXPECT_EQ(dump.events[i].comm, test::hostile_strings()[i % test::hostile_strings().size()].substr(0, 1024));
  }
}

TEST_F(FlightRecorderTest, KeepsStacksThatBecomeKnownLater) {
  begin(options({}));
  StackTable& stacks = world_.registry.stacks();
  const StackIndex reserved = stacks.reserve(), of_a_process_that_ended = stacks.reserve();
  Sample sample{.process = world_.process,
                .pid = 4242,
                .tid = 4242,
                .domain = 0,
                .cpu = 0,
                .stack = reserved,
                .weight = 1,
                .role = ThreadRole::mutator,
                .holds_lock = false,
                .zero = {}};
  Events events(0);
  sample.stack = of_a_process_that_ended;
  events.add_record(now_ + 1, EventKind::sample, sample, 0, sample_stream);
  sample.stack = reserved;
  events.add_record(now_ + 1, EventKind::sample, sample, 0, sample_stream);
  consume(events);
  pass(2 * second);
  auto asked = (*recorder_)->request_dump("snap");
  const FrameIndex frame = stacks.add_frame({.kind = FrameKind::ocaml, .function = "Web.handle"});
  stacks.set_reserved(reserved, stacks.add_stack(0, frame));
  stacks.set_reserved(of_a_process_that_ended, StackTable::unknown());
  pass(3 * second);
  end();
  const std::string path = asked.get().path;
  class Stacks final : public Sink {
   public:
    void header(const RunHeader&) override {}
    void consume(const Batch& batch, const Registry&) override {
      for (const Event& event : batch.events())
        if (const auto one = batch.payload_as<Sample>(event)) stack = one->stack;
    }
    void flush() override {}
    void summary(const RunSummary&, const Registry& registry) override {
      function = registry.stacks().innermost_ocaml(stack).function;
    }
    StackIndex stack = 0;
    std::string function;
  } seen;
  auto file = RecordingFile::open(test::open_file(path), path);
  ASSERT_TRUE(file && *file);
  ASSERT_TRUE((*file)->replay(seen));
  EXPECT_EQ(seen.function, "Web.handle");
}

}  // namespace
}  // namespace rtev::flight
