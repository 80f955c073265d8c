// SPDX-License-Identifier: MIT
// librtev alone, without the tracer, on rings of real programs: ended and running ones.
#include <rtev/names.hpp>
#include <rtev/ring_reader.hpp>

#include "formats/jsonl/jsonl_sink.hpp"
#include "formats/output/output.hpp"
#include "live/harness.hpp"
#include "live/oracle.hpp"
#include "ring/reader_access.hpp"
#include "stream/registry.hpp"

namespace rtev::test {
namespace {

/// Collects a reader's events as the JSON lines of the tracer.
class Collector {
 public:
  explicit Collector(RingReader& reader) : reader_(reader) {
    registry_.add_ring({.process = registry_.add_process({}),
                        .user_event_name = [this](std::uint16_t id) { return reader_.user_event_name(id); }});
    RingReaderAccess::set_slot(reader, 1);
  }

  void poll() {
    while (!reader_.poll([this](const Batch& batch) { jsonl_.consume(batch, registry_); }).complete) {
    }
  }
  Records take() {
    jsonl_.flush();
    return records(json_lines(lines_.text()));
  }

 private:
  RingReader& reader_;
  Registry registry_;
  StringOutput lines_;
  JsonlSink jsonl_{lines_};
};

class ReaderLive : public LiveTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ReaderLive, ReadsAPreservedRing) {
  const pid_t pid = run_to_end(preserved(GetParam()));
  auto reader = RingReader::open(ring_of(pid));
  ASSERT_TRUE(reader) << reader.error().message();
  Collector collector(*reader);
  collector.poll();
  EXPECT_EQ(difference(oracle(dir.path(), pid), collector.take()), "");
  EXPECT_TRUE(reader->accounting().balanced());
  EXPECT_EQ(reader->accounting().delivered, reader->accounting().written);
}

TEST_P(ReaderLive, FollowsALiveRing) {
  Process process(preserved(GetParam()), "ready");
  auto reader = RingReader::open(ring_of(process.pid()));
  ASSERT_TRUE(reader) << reader.error().message();
  Collector collector(*reader);
  collector.poll();
  process.close_stdin();
  while (process.running()) collector.poll();
  collector.poll();
  EXPECT_EQ(difference(oracle(dir.path(), process.pid()), collector.take()), "");
  EXPECT_TRUE(reader->accounting().balanced());
}

INSTANTIATE_TEST_SUITE_P(Programs, ReaderLive,
                         ::testing::Values("busy_alloc", "domains", "user_events", "systhreads", "alloc_buckets",
                                           "forker"),
                         by_label);

class FastRingLive : public LiveTest {};

TEST_F(FastRingLive, OvertakenReaderLosesWordsButReadsValidEvents) {
  // The writer of a ring of 256 words laps the reader again and again.
  Command command = with_events("busy_alloc", {"300"});
  command.env["OCAMLRUNPARAM"] = "e=8,d=2";
  Process process(command, "ready");
  auto reader = RingReader::open(ring_of(process.pid()));
  ASSERT_TRUE(reader) << reader.error().message();
  EXPECT_EQ(reader->layout().rings, 2u);
  EXPECT_EQ(reader->layout().ring_words, 256u);
  std::uint64_t last = 0, lost = 0, backwards = 0, unknown = 0;
  auto consume = [&](const Batch& batch) {
    for (const Event& event : batch.events()) {
      if (const auto loss = event.kind == EventKind::lost ? batch.payload_as<Loss>(event) : std::nullopt)
        lost += loss->words;
      backwards += event.time < last;
      last = event.time;
      const bool span = event.kind == EventKind::begin || event.kind == EventKind::end;
      unknown += span && phase_name(Family::since_5_3, event.id).empty();
    }
  };
  process.close_stdin();
  while (process.running()) reader->poll(consume);
  reader->poll(consume);
  const Accounting words = reader->accounting();
  EXPECT_TRUE(words.balanced());
  EXPECT_EQ(words.unread, 0u);
  EXPECT_EQ(words.corrupt, 0u);
  EXPECT_EQ(words.lost, lost);
  EXPECT_EQ(backwards, 0u);
  EXPECT_EQ(unknown, 0u);
  EXPECT_GT(words.delivered, 0u);
}

}  // namespace
}  // namespace rtev::test
