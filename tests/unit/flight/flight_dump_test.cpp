// SPDX-License-Identifier: MIT
// A dump is the part of the stream that it says, whatever the stream was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "flight/flight_recorder.hpp"
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

}  // namespace
}  // namespace rtev::flight
