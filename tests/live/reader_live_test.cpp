// SPDX-License-Identifier: MIT
// librtev alone, without the tracer, on rings of real programs: ended and running ones.
#include <rtev/names.hpp>
#include <rtev/ring_reader.hpp>

#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

using Strings = std::vector<std::string>;

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += "0123456789abcdef"[std::to_integer<unsigned>(byte) >> 4];
    text += "0123456789abcdef"[std::to_integer<unsigned>(byte) & 15];
  }
  return text.empty() ? "-" : text;
}

/// Collects a reader's events in the form of the tracer's JSON.
class Collector {
 public:
  explicit Collector(RingReader& reader) : reader_(reader) {}

  void poll() {
    while (!reader_.poll([this](const Batch& batch) { add(batch); }).complete) {
    }
  }
  Records take() { return records(std::exchange(events_, {})); }

 private:
  void add(const Batch& batch) {
    for (const Event& event : batch.events()) {
      Json json{{"ts", event.time}, {"domain", Source::unpack(event.source).domain}};
      describe(json, event, batch);
      events_.push_back(std::move(json));
    }
  }

  void describe(Json& json, const Event& event, const Batch& batch) {
    constexpr Family family = Family::since_5_3;
    const auto user = [&](const char* kind) {
      json["type"] = "user";
      json["kind"] = kind;
      const std::string name(reader_.user_event_name(event.id));
      json["name"] = Json::parse(Json(name).dump(-1, ' ', false, Json::error_handler_t::replace));
    };
    switch (event.kind) {
      case EventKind::begin:
      case EventKind::end:
        json["type"] = event.kind == EventKind::begin ? "begin" : "end";
        json["name"] = phase_name(family, event.id);
        break;
      case EventKind::counter:
        json["type"] = "counter";
        json["name"] = counter_name(family, event.id);
        json["value"] = event.value;
        break;
      case EventKind::alloc:
        json["type"] = "alloc";
        json["buckets"] = batch.payload_as<std::array<std::uint64_t, alloc_bucket_count>>(event).value();
        break;
      case EventKind::lifecycle:
        json["type"] = "lifecycle";
        json["name"] = lifecycle_name(event.id);
        json["value"] = event.signed_value();
        break;
      case EventKind::user_unit:
        user("unit");
        break;
      case EventKind::user_int:
        user("int");
        json["value"] = event.signed_value();
        break;
      case EventKind::user_begin:
        user("begin");
        break;
      case EventKind::user_end:
        user("end");
        break;
      case EventKind::user_custom:
        user("custom");
        json["bytes"] = hex(batch.payload(event)) == "-" ? "" : hex(batch.payload(event));
        break;
      default:
        json["type"] = "lost";
        break;
    }
  }

  RingReader& reader_;
  std::vector<Json> events_;
};

class ReaderLive : public LiveTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ReaderLive, PreservedFile) {
  Process process(preserved(GetParam()));
  run_through(process);
  auto reader = RingReader::open(ring_of(process.pid()));
  ASSERT_TRUE(reader) << reader.error().message();
  Collector collector(*reader);
  collector.poll();
  EXPECT_EQ(difference(oracle(dir.path(), process.pid()), collector.take()), "");
  EXPECT_TRUE(reader->accounting().balanced());
  EXPECT_EQ(reader->accounting().delivered, reader->accounting().written);
}

TEST_P(ReaderLive, LiveRing) {
  Process process(preserved(GetParam()));
  process.lines_until("ready");
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
                         [](const auto& way) { return std::string(way.param); });

class FastRingLive : public LiveTest {};

TEST_F(FastRingLive, OvertakenReaderLosesWordsButReadsValidEvents) {
  // The writer of a ring of 256 words laps the reader again and again.
  Command command = with_events("busy_alloc", {"300"});
  command.env["OCAMLRUNPARAM"] = "e=8,d=2";
  Process process(command);
  process.lines_until("ready");
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
