// SPDX-License-Identifier: MIT
#include "formats/chrome/chrome_recording.hpp"

#include <gmock/gmock.h>

#include <sstream>

#include "formats/fxt/embedded.hpp"
#include "formats/jsonl/jsonl_sink.hpp"
#include "recording/replay.hpp"
#include "unit/formats/chrome/chrome_fixture.hpp"

namespace rtev::test {
namespace {

/// What a trace says as JSON lines.
std::string as_json_lines(const std::string& trace, bool* complete = nullptr) {
  StringOutput output;
  JsonlSink sink{output};
  Replay replay{sink};
  std::istringstream stream{trace};
  for (std::string line; std::getline(stream, line);) {
    const auto chunk = recording_chunk(line);
    if (!chunk) continue;
    const auto bytes = inflate_chunk(std::as_bytes(std::span(*chunk)));
    EXPECT_TRUE(bytes) << bytes.error().message();
    const auto fed = replay.feed(*bytes);
    EXPECT_TRUE(fed) << fed.error().message();
  }
  const auto end = replay.finish();
  EXPECT_TRUE(end) << end.error().message();
  if (complete != nullptr) *complete = end && end->complete;
  return std::string(output.text());
}

class ChromeRecording : public testing::Test {
 protected:
  ChromeRecording() {
    world_.user_names = {{1, "request"}};
    const RunHeader header{
        .version = "0.1.0", .host = "box", .kernel = "6.18.0", .command_line = {"rtev-bpf", "-p"}, .start_ns = 5};
    direct_.header(header);
    chrome_.header(header);
  }

  void add(const Events& events) {
    direct_.consume(events.batch(), world_.registry);
    chrome_.consume(events.batch(), world_.registry);
  }
  void add_some(std::uint64_t time) {
    const Thread main = make_thread(4242, 4242, "server", true);
    add(Events{world_.slot}
            .add_record(time, EventKind::process, ProcessRecord{world_.process, 0, 0})
            .add(time + 1, EventKind::begin, phase_minor)
            .add(time + 2, EventKind::counter, counter_minor_allocated, UINT64_MAX)
            .add(time + 3, EventKind::end, unknown_phase)
            .add(time + 4, EventKind::user_int, 1, static_cast<std::uint64_t>(INT64_MIN))
            .add_bytes(time + 5, EventKind::user_custom, std::string_view{"\x00\xff\x1bz", 4}, 1)
            .add_record(time + 6, EventKind::lost, Loss{12, time + 5, time + 6})
            .late());
    add(Events{0}
            .add_record(time + 7, EventKind::sched_switch,
                        SchedSwitch{1, LeftState::preempted, main, make_thread(9, 9, "a\"b\xff", false)}, 0, 1)
            .add_record(time + 8, EventKind::wakeup, Wakeup{1, main, make_thread(9, 9, "c", false)}, 0, 1));
  }
  void end() {
    RunSummary summary;
    summary.end_ns = 1'000'000;
    summary.late = 3;
    summary.drops = {{"switch", 3}, {"exec", 0}};
    direct_.summary(summary, world_.registry);
    chrome_.summary(summary, world_.registry);
  }

  World world_;
  StringOutput lines_, trace_;
  JsonlSink direct_{lines_};
  ChromeSink chrome_{trace_, {.with_recording = true, .recording_interval_ns = 0}};
};

TEST_F(ChromeRecording, NothingIsLost) {
  for (std::uint64_t time = 100; time < 10'000; time += 100) add_some(time);
  end();
  bool complete = false;
  EXPECT_EQ(as_json_lines(trace_.text(), &complete), lines_.text());
  EXPECT_TRUE(complete);
  EXPECT_TRUE(read_chrome_trace(trace_.text()).problems.empty());
}

TEST_F(ChromeRecording, EachFlushHoldsAllUntilThen) {
  for (std::uint64_t time = 100; time < 1000; time += 100) {
    add_some(time);
    direct_.flush();
    chrome_.flush();
    bool complete = true;
    const std::string cut = trace_.text();
    const std::string replayed = as_json_lines(cut, &complete);
    EXPECT_FALSE(complete);
    EXPECT_TRUE(replayed.starts_with(lines_.text()));
    EXPECT_TRUE(read_cut_chrome_trace(cut).problems.empty());
  }
}

TEST_F(ChromeRecording, LongStreamsAreHandedOutInPieces) {
  std::size_t most = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    Events events{world_.slot};
    for (std::uint64_t j = 0; j < 1000; ++j) events.add(i * 10'000 + j, EventKind::user_unit, 1);
    add(events);
    direct_.flush();
  }
  end();
  std::istringstream stream{std::string(trace_.text())};
  std::size_t chunks = 0;
  for (std::string line; std::getline(stream, line);) {
    if (!recording_chunk(line)) continue;
    ++chunks;
    most = std::max(most, line.size());
  }
  EXPECT_GT(chunks, 10U);
  EXPECT_LT(most, 2 * EmbeddedRecording::chunk_bytes);
  EXPECT_EQ(as_json_lines(trace_.text()), lines_.text());
}

TEST_F(ChromeRecording, IsLeftOutOnRequest) {
  StringOutput output;
  ChromeSink sink{output, {.with_recording = false}};
  sink.header({});
  sink.consume(Events{world_.slot}.add(1, EventKind::user_unit, 1).batch(), world_.registry);
  sink.flush();
  sink.summary({}, world_.registry);
  EXPECT_EQ(output.text().find("rtev_recording"), std::string::npos);
}

TEST(RecordingChunk, OnlyOfWholeLines) {
  const std::string line = std::string(recording_prefix) + "Zm9v" + std::string(recording_suffix);
  EXPECT_EQ(recording_chunk(line), "foo");
  for (std::size_t length = 0; length < line.size(); ++length) EXPECT_FALSE(recording_chunk(line.substr(0, length)));
  EXPECT_FALSE(recording_chunk(R"({"ph":"M","name":"rtev_header","pid":2147418112,"args":{"fxt":"Zm9v"}},)"));
  EXPECT_FALSE(recording_chunk(std::string(recording_prefix) + "Zm9\"" + std::string(recording_suffix)));
  EXPECT_FALSE(recording_chunk(""));
}

}  // namespace
}  // namespace rtev::test
