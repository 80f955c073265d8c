// SPDX-License-Identifier: MIT
#include "flight/flight_recorder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "unit/flight/flight_fixture.hpp"
#include "unit/flight/flight_times.hpp"

namespace rtev::flight {
namespace {

using test::Events;

constexpr std::uint64_t words_of_event = 3;

/// A random stream of several processes, which ends, begins them and uses their slots again. Their figures are exact.
class RandomStream {
 public:
  explicit RandomStream(unsigned seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) begin_process(pick(20) + 1);
  }

  /// One batch, given to the recorder and to what remembers the whole stream.
  void step(Sink& recorder, SeenStream& whole) {
    if (free_slot_ != 0) begin_process(std::exchange(free_slot_, 0));
    if (pick(20) == 0) end_process();
    for (std::uint64_t left = pick(60); left > 0; --left) add_event(any_process());
    flush_batch(recorder, whole);
    recorder.advance(++time_ns_, registry_);
    if (recorder.wants_checkpoint()) recorder.checkpoint(so_far_, registry_);
  }

  std::uint64_t time_ns() const { return time_ns_; }
  const RunSummary& so_far() {
    so_far_.end_ns = time_ns_;
    return so_far_;
  }
  const Registry& registry() const { return registry_; }

 private:
  struct Running {
    std::uint32_t slot = 0;
    ProcessIndex process = 0;
    std::map<std::uint16_t, std::string> names{};
    std::map<std::uint16_t, std::vector<std::uint16_t>> phases{};  ///< open, by domain
  };

  std::uint64_t pick(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(random_);
  }

  void begin_process(std::uint64_t slot) {
    ProcessInfo info = test::World::default_info();
    info.pid = static_cast<std::int32_t>(1000 + next_process_);
    info.comm = "server" + std::to_string(next_process_);
    const auto process = static_cast<ProcessIndex>(next_process_++);
    registry_.restore_process(process, info);
    auto& running = running_[slot];
    running = std::make_unique<Running>();
    running->slot = static_cast<std::uint32_t>(slot);
    running->process = process;
    for (std::uint16_t id = 0; id < 4; ++id)
      running->names[id] = "span" + std::to_string(id) + "_" + std::to_string(process);
    registry_.restore_ring(running->slot,
                           {.process = process, .domains = 4, .user_event_name = [r = running.get()](std::uint16_t id) {
                              const auto found = r->names.find(id);
                              return found != r->names.end() ? std::string_view(found->second) : std::string_view();
                            }});
    record(ProcessAction::found, process);
  }

  /// After this batch. The next process gets its slot.
  void end_process() {
    const auto at = std::next(running_.begin(), static_cast<std::ptrdiff_t>(pick(running_.size())));
    const std::uint64_t slot = at->first;
    record(ProcessAction::exit, at->second->process);
    pending_exit_ = slot;
  }

  void record(ProcessAction action, ProcessIndex process) {
    const ProcessRecord payload{.process = process, .peer = 0, .detail = 0};
    batch_.add_record(++time_ns_, EventKind::process, payload, static_cast<std::uint16_t>(action));
    count(EventKind::process, 0);
  }

  Running& any_process() {
    return *std::next(running_.begin(), static_cast<std::ptrdiff_t>(pick(running_.size())))->second;
  }

  void add_event(Running& process) {
    time_ns_ += pick(2 * ms);
    const auto domain = static_cast<std::uint16_t>(pick(3));
    const auto id = static_cast<std::uint16_t>(pick(4));
    auto& open = process.phases[domain];
    switch (pick(12)) {
      case 0:
      case 1:
        if (open.size() < 4) {
          const std::uint16_t phase = open.empty()
                                          ? test::phase_major
                                          : static_cast<std::uint16_t>(test::phase_minor_local_roots + open.size());
          open.push_back(phase);
          put(process, domain, EventKind::begin, phase, 0);
        }
        break;
      case 2:
      case 3:
      case 4:
        if (!open.empty()) {
          put(process, domain, EventKind::end, open.back(), 0);
          open.pop_back();
        }
        break;
      case 5:
        put(process, domain, EventKind::user_begin, id, 0);
        break;
      case 6:
      case 7:
        put(process, domain, EventKind::user_end, id, 0);
        break;
      case 8:
        put(process, domain, EventKind::counter, id, pick(1000));
        break;
      case 9:
        put_bytes(process, domain, EventKind::user_custom, id,
                  std::string(pick(40), static_cast<char>('a' + pick(26))));
        break;
      case 10:
        if (pick(8) == 0) {
          const Loss loss{.words = pick(100) + 1, .from_ns = time_ns_, .to_ns = time_ns_};
          put_bytes(process, domain, EventKind::lost, 0, {reinterpret_cast<const char*>(&loss), sizeof loss});
          open.clear();
          lost_[process.process] += loss.words;
        }
        break;
      default:
        put(process, domain, EventKind::user_int, id, pick(1000));
        break;
    }
  }

  void put(Running& process, std::uint16_t domain, EventKind kind, std::uint16_t id, std::uint64_t value) {
    parts_.push_back({Event{.time = time_ns_,
                            .value = value,
                            .source = Source{process.slot, domain}.pack(),
                            .id = id,
                            .kind = kind,
                            .flags = 0},
                      {}});
    count(kind, process.process);
  }
  void put_bytes(Running& process, std::uint16_t domain, EventKind kind, std::uint16_t id, std::string bytes) {
    parts_.push_back({Event{.time = time_ns_,
                            .value = 0,
                            .source = Source{process.slot, domain}.pack(),
                            .id = id,
                            .kind = kind,
                            .flags = 0},
                      std::move(bytes)});
    count(kind, process.process);
  }
  void count(EventKind kind, ProcessIndex process) {
    ++so_far_.events[static_cast<std::size_t>(kind)];
    if (process == 0) return;
    ProcessInfo& info = registry_.process(process);
    ++info.words.events;
    info.words.delivered += words_of_event;
    info.words.lost = lost_[process];
    info.words.written = info.words.delivered + info.words.lost;
  }

  void flush_batch(Sink& recorder, SeenStream& whole) {
    // Payloads of other batches lie before those of this one.
    std::vector<Event> events(batch_.batch().events().begin(), batch_.batch().events().end());
    std::vector<std::byte> payloads(batch_.batch().payloads().begin(), batch_.batch().payloads().end());
    for (auto& [event, bytes] : parts_) {
      if (has_payload(event.kind)) {
        event.value = Batch::payload_ref(payloads.size(), bytes.size());
        const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
        payloads.insert(payloads.end(), first, first + bytes.size());
      }
      events.push_back(event);
    }
    std::ranges::stable_sort(events, {}, &Event::time);
    const Batch batch(events, payloads);
    recorder.consume(batch, registry_);
    whole.consume(batch, registry_);
    batch_ = Events(0);
    parts_.clear();
    if (pending_exit_ == 0) return;
    registry_.process(running_[pending_exit_]->process).ended = true;
    registry_.remove_ring(static_cast<std::uint32_t>(pending_exit_));
    running_.erase(pending_exit_);
    free_slot_ = std::exchange(pending_exit_, 0);
  }

  std::mt19937 random_;
  Registry registry_;
  std::map<std::uint64_t, std::unique_ptr<Running>> running_;  ///< by slot
  std::uint64_t next_process_ = 1, pending_exit_ = 0, free_slot_ = 0;
  std::uint64_t time_ns_ = 10 * second;
  Events batch_{0};
  std::vector<std::pair<Event, std::string>> parts_;
  std::map<ProcessIndex, std::uint64_t> lost_;
  RunSummary so_far_;
};

RecorderOptions keep(std::uint64_t keep_ns, std::size_t bytes = std::size_t{64} << 20) {
  return {.history = {.keep_ns = keep_ns, .max_bytes = bytes}};
}

template <typename T>
std::vector<T> last(const std::vector<T>& all, std::size_t count) {
  return {all.end() - static_cast<std::ptrdiff_t>(std::min(count, all.size())), all.end()};
}

/// Of what ended: what did so after a time.
std::vector<SeenFacts::Ended> since(std::vector<SeenFacts::Ended> all, std::uint64_t time_ns) {
  std::erase_if(all, [&](const auto& ended) { return std::get<1>(ended) < time_ns; });
  std::ranges::sort(all);
  return all;
}

/// A dump of some part of a random stream says the same of that part as the whole stream.
void check_dump(unsigned seed) {
  SCOPED_TRACE(seed);
  RandomStream stream(seed);
  std::mt19937 random(seed);
  Recorder recorder(keep((random() % 40 + 1) * 50 * ms));
  SeenStream whole;
  recorder->header({.host = "host", .start_ns = stream.time_ns(), .start_realtime_ns = 1});
  const auto before = random() % 200 + 1, after = random() % 60 + 1;
  for (auto i = before; i > 0; --i) stream.step(*recorder, whole);
  auto asked = recorder->request_dump("snap");
  for (auto i = after; i > 0; --i) stream.step(*recorder, whole);
  recorder->summary(stream.so_far(), stream.registry());
  const DumpResult result = asked.get();
  ASSERT_FALSE(result.error) << result.error->message();
  const auto read = read_dump(result.path);
  const SeenStream& dump = *read;

  // The window: so many events, which end at end_ns.
  const std::uint64_t count = result.events;
  ASSERT_LE(count, dump.events.size());
  EXPECT_EQ(std::accumulate(dump.end.events.begin(), dump.end.events.end(), std::uint64_t{0}), dump.events.size());
  std::vector<SeenEvent> until(whole.events);
  std::erase_if(until, [&](const SeenEvent& event) {
    return event.time >= dump.end.end_ns && dump.end.end_ns < stream.time_ns();
  });
  EXPECT_EQ(last(dump.events, count), last(until, count));
  EXPECT_EQ(dump.run.start_ns, dump.run.shown_from_ns);
  EXPECT_EQ(dump.run.start_ns, dump.end.start_ns);

  // What began before it.
  const std::size_t state = dump.events.size() - count;
  for (std::size_t i = 0; i < state; ++i) {
    EXPECT_LE(dump.events[i].time, dump.run.start_ns);
    EXPECT_FALSE(dump.events[i].kind == EventKind::user_begin && dump.events[i].name.empty());
  }
  const auto within = [&](std::vector<SeenFacts::Ended> all) {
    std::erase_if(all, [&](const auto& ended) { return until.empty() || std::get<1>(ended) > until.back().time; });
    return since(std::move(all), dump.run.start_ns);
  };
  EXPECT_EQ(since(dump.facts.pauses, dump.run.start_ns), within(whole.facts.pauses));
  EXPECT_EQ(since(dump.facts.spans, dump.run.start_ns), within(whole.facts.spans));

  // The figures.
  std::map<std::string, std::uint64_t> events_of;
  std::map<std::string, std::uint64_t> lost_of;
  for (const SeenEvent& event : last(dump.events, count)) {
    if (event.kind == EventKind::process) continue;
    ++events_of[event.comm];
    if (event.kind == EventKind::lost) {
      Loss loss{};
      std::memcpy(&loss, event.payload.data(), sizeof loss);
      lost_of[event.comm] += loss.words;
    }
  }
  for (const auto& [index, info] : dump.processes) {
    EXPECT_EQ(info.words.events, events_of[info.comm]) << info.comm;
    EXPECT_EQ(info.words.delivered, words_of_event * events_of[info.comm]) << info.comm;
    EXPECT_TRUE(info.words.balanced());
    events_of.erase(info.comm);
  }
  for (const auto& [comm, number] : events_of) EXPECT_EQ(number, 0u) << comm << " is not in the list";
}

TEST(FlightRecorder, ADumpIsThatPartOfTheStream) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    check_dump(seed);
    if (::testing::Test::HasFailure()) break;
  }
}

/// A process whose stream the test writes.
class FlightRecorderTest : public ::testing::Test {
 protected:
  void begin(RecorderOptions options, DumpDirectory::Options directory = {.max_bytes = 1 << 30, .min_free = {}}) {
    recorder_.emplace(std::move(options), directory);
    (*recorder_)->header({.host = "host", .start_ns = now_, .start_realtime_ns = 1});
  }
  void consume(const Events& events) {
    for (const Event& event : events.batch().events()) now_ = std::max(now_, event.time);
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
  (*recorder_)->release_at(now_, world_.registry);
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
  const StackIndex reserved = stacks.reserve();
  const Sample sample{.process = world_.process,
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
  events.add_record(now_ + 1, EventKind::sample, sample, 0, sample_stream);
  consume(events);
  pass(2 * second);
  auto asked = (*recorder_)->request_dump("snap");
  const FrameIndex frame = stacks.add_frame({.kind = FrameKind::ocaml, .function = "Web.handle"});
  stacks.set_reserved(reserved, stacks.add_stack(0, frame));
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
