// SPDX-License-Identifier: MIT
// The file as such: cut anywhere, written in pieces, with any strings, however long.
#include <gmock/gmock.h>

#include "unit/formats/perfetto/perfetto_world.hpp"

namespace rtev::test {
namespace {

using testing::SizeIs;

using PerfettoFile = PerfettoTest;

TEST_F(PerfettoFile, CutAnywhereItIsGoodUpToTheLastWholePacket) {
  for (std::uint64_t time = 2'000; time < 2'400; time += 100) {
    change(time, 0, idle(), ours(pid, 0));
    draw(ring()
             .add(time + 1, EventKind::begin, phase_minor)
             .add(time + 2, EventKind::counter, counter_minor_allocated, time)
             .add_record(time + 3, EventKind::lost, Loss{.words = 12, .from_ns = time + 2, .to_ns = time + 3}));
    change(time + 4, 0, ours(pid, 0), idle());
  }
  const std::size_t packets = finish().packets;
  const std::string& file = output_.text();
  std::size_t whole = 0;
  for (std::size_t size = 0; size < file.size(); ++size) {
    const PerfettoTrace trace = read_perfetto(std::string_view{file}.substr(0, size), Ending::open);
    ASSERT_EQ(trace.all_errors(), "") << size;
    ASSERT_GE(trace.packets, whole);
    whole = trace.packets;
  }
  EXPECT_EQ(whole, packets - 1);
}

/// Notes the pieces it gets.
class Pieces final : public Output {
 public:
  bool write(std::string_view bytes) override {
    pieces.emplace_back(bytes);
    return true;
  }
  const std::optional<Error>& error() const override { return error_; }
  std::vector<std::string> pieces;

 private:
  std::optional<Error> error_;
};

TEST_F(PerfettoFile, PiecesAreLargeAndHoldWholePackets) {
  Pieces pieces;
  PerfettoSink sink{pieces, {.flush_interval_ns = UINT64_MAX}};
  Events events = ring();
  for (std::uint64_t i = 0; i < 40'000; ++i) events.add(2'000 + i, EventKind::user_unit, 1);
  sink.consume(events.batch(), world_.registry);
  sink.flush();
  ASSERT_GE(pieces.pieces.size(), 2U);
  std::string so_far;
  for (const std::string& piece : pieces.pieces) {
    EXPECT_GE(piece.size(), std::size_t{256} << 10);
    EXPECT_LE(piece.size(), std::size_t{260} << 10);
    so_far += piece;
    EXPECT_EQ(read_perfetto(so_far, Ending::open).bytes_left, 0U);
  }
  sink.summary({.end_ns = 100'000}, world_.registry);
  so_far += pieces.pieces.back();
  const PerfettoTrace trace = read_perfetto(so_far);
  EXPECT_EQ(trace.all_errors(), "");
  EXPECT_THAT(trace.thread(pid, pid).instants, SizeIs(40'000));
}

TEST_F(PerfettoFile, FlushHandsOutAtOnceOnlyIfAsked) {
  Pieces at_once, rarely;
  PerfettoSink prompt{at_once, {.flush_interval_ns = 0}};
  PerfettoSink calm{rarely, {.flush_interval_ns = 3'600'000'000'000}};
  for (PerfettoSink* sink : {&prompt, &calm}) {
    for (int i = 0; i < 3; ++i) {
      sink->consume(ring().add(2'000, EventKind::user_unit, 1).batch(), world_.registry);
      sink->flush();
    }
  }
  EXPECT_THAT(at_once.pieces, SizeIs(3));
  EXPECT_LE(rarely.pieces.size(), 1U);
  calm.summary({.end_ns = 3'000}, world_.registry);
  EXPECT_GE(rarely.pieces.size(), 1U);
}

TEST_F(PerfettoFile, TooManyNamesStartTheSequenceOver) {
  Events events = ring();
  for (std::uint16_t id = 0; id < 20'000; ++id) {
    world_.user_names[id] = "event " + std::to_string(id);
    events.add(2'000 + id, EventKind::user_unit, id);
  }
  events.add(50'000, EventKind::user_int, 0, 5);
  draw(events);
  const PerfettoTrace trace = finish();
  EXPECT_EQ(trace.restarts, 2U);
  const auto& instants = trace.thread(pid, pid).instants;
  ASSERT_THAT(instants, SizeIs(20'001));
  for (std::size_t id = 0; id < 20'000; ++id)
    ASSERT_EQ(instants[id].name, world_.user_names[static_cast<std::uint16_t>(id)]);
  EXPECT_EQ(instants.back().name, "event 0");
  EXPECT_EQ(instants.back().details.at("value"), "5");
}

TEST_F(PerfettoFile, HostileStringsBecomeText) {
  std::uint16_t id = 10;
  for (const std::string& text : hostile_strings()) {
    world_.user_names[++id] = text;
    world_.registry.process(world_.process).name = text;
    Thread thread = make_thread(4000 + id, 4000 + id, text, false);
    draw(ring().add(2'000U + id, EventKind::user_unit, id));
    change(2'000U + id, 0, idle(), thread);
    change(2'000U + id, 0, thread, idle());
    draw(sched().add_record(2'000U + id, EventKind::process, ProcessRecord{world_.process, 0, 0},
                            static_cast<std::uint16_t>(ProcessAction::exec)));
  }
  sink_.header({.version = "\xff",
                .host = all_bytes(),
                .kernel = "\x1b[2J",
                .machine = "x86_64",
                .command_line = {all_bytes()}});
  finish({.end_ns = 9'000, .drops = {{all_bytes(), 1}}});
}

TEST_F(PerfettoFile, LargePayloadsAreShownInPart) {
  draw(ring().add_bytes(2'000, EventKind::user_custom, std::string(100'000, 'x'), 1));
  const auto instants = finish().thread(pid, pid).instants;
  ASSERT_THAT(instants, SizeIs(1));
  EXPECT_EQ(instants[0].details.at("bytes").size(), 2 * 4096 + 3U);
}

/// A process after the other, each with threads, counters and a ring.
TEST_F(PerfettoFile, ProcessesWithOnePidAreToldApart) {
  std::uint64_t time = 2'000;
  for (int round = 0; round < 3; ++round) {
    const ProcessIndex process = world_.registry.add_process(World::default_info());
    const std::uint32_t slot = world_.add_ring(process);
    change(++time, 0, idle(), ours(pid));
    draw(Events{slot}
             .add(time + 1, EventKind::user_unit, 1)
             .add(time + 2, EventKind::counter, counter_minor_allocated, 1));
    time += 2;
    change(++time, 0, ours(pid), idle(), LeftState::dead);
    draw(sched().add_record(++time, EventKind::process, ProcessRecord{process, 0, 0},
                            static_cast<std::uint16_t>(ProcessAction::exit)));
    world_.registry.remove_ring(slot);
    time += 2'000'000'000;  // what ended is remembered for a moment
    draw(sched().add_record(time, EventKind::process, ProcessRecord{world_.process, 0, 0},
                            static_cast<std::uint16_t>(ProcessAction::pause)));
  }
  const PerfettoTrace trace = finish({.end_ns = time + 1});
  std::size_t processes = 0;
  for (const auto& [uuid, track] : trace.tracks) processes += track.is_process && track.pid == pid;
  EXPECT_GE(processes, 3U);
  EXPECT_GE(trace.named("domain 0: minor_allocated").size(), 3U);
}

}  // namespace
}  // namespace rtev::test
