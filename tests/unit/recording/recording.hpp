// SPDX-License-Identifier: MIT
// A stream shown directly and by way of a recording, for tests that both are the same.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/fxt/fxt_sink.hpp"
#include "formats/jsonl/jsonl_sink.hpp"
#include "formats/output/output.hpp"
#include "recording/replay.hpp"
#include "rtev/fxt_reader.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {

inline RunHeader make_header() {
  return {.version = "1.2",
          .host = "host",
          .kernel = "6.18",
          .machine = "x86_64",
          .command_line = {"rtev-bpf", "record", "-o", "out.fxt"},
          .start_ns = 1000,
          .start_realtime_ns = 1'700'000'000'000'000'000};
}

/// A sink that shows the stream as JSON lines at once, and records it.
class Recording final : public Sink {
 public:
  void header(const RunHeader& header) override {
    jsonl_.header(header);
    fxt_.header(header);
  }
  void consume(const Batch& batch, const Registry& registry) override {
    jsonl_.consume(batch, registry);
    fxt_.consume(batch, registry);
    for (const Event& event : batch.events()) {
      ++summary_.events[static_cast<std::size_t>(event.kind)];
      summary_.end_ns = std::max(summary_.end_ns, event.time);
      if (event.flags & flag_late) ++summary_.late;
    }
  }
  void flush() override {
    jsonl_.flush();
    fxt_.flush();
  }
  void summary(const RunSummary& summary, const Registry& registry) override {
    jsonl_.summary(summary, registry);
    fxt_.summary(summary, registry);
  }
  /// With a summary made of what was consumed.
  void end(const Registry& registry) {
    summary_.start_ns = 1000;
    summary_.forced = 3;
    summary_.drops = {{.kind = "switch", .count = 4}, {.kind = "wakeup", .count = 0}};
    summary_.rings_missed = 5;
    summary_.own_cpu_ns = 6;
    summary_.own_max_rss_bytes = 7;
    summary(summary_, registry);
  }

  const std::string& shown() const { return lines_.text(); }
  const std::string& recorded() const { return file_.text(); }
  const FxtSink& fxt() const { return fxt_; }

 private:
  StringOutput lines_, file_;
  JsonlSink jsonl_{lines_};
  FxtSink fxt_{file_, {.max_held_ns = 0}};
  RunSummary summary_;
};

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

struct Replayed {
  std::string lines{};
  Result<void> fed{};
  Result<Replay::End> end = Replay::End{};
};

/// As JSON lines, from pieces of this size.
inline Replayed replayed(std::string_view file, std::size_t piece = SIZE_MAX) {
  StringOutput output;
  JsonlSink jsonl(output);
  Replay replay(jsonl);
  Replayed result;
  while (!file.empty() && result.fed) {
    result.fed = replay.feed(bytes_of(file.substr(0, piece)));
    file.remove_prefix(std::min(piece, file.size()));
  }
  result.end = replay.finish();
  jsonl.flush();
  result.lines = output.text();
  return result;
}

inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

/// Expects the recorded stream to be the same as the one shown directly; prints the first line that differs.
inline void expect_same(const Recording& recording) {
  EXPECT_FALSE(recording.fxt().writer().error()) << recording.fxt().writer().error()->message();
  EXPECT_EQ(recording.fxt().writer().refused(), 0u);
  const Replayed back = replayed(recording.recorded());
  ASSERT_TRUE(back.fed) << back.fed.error().message();
  ASSERT_TRUE(back.end) << back.end.error().message();
  EXPECT_TRUE(back.end->complete) << back.end->note;
  if (back.lines == recording.shown()) return;
  const auto shown = lines_of(recording.shown()), again = lines_of(back.lines);
  for (std::size_t i = 0; i < std::min(shown.size(), again.size()); ++i) ASSERT_EQ(shown[i], again[i]) << "line " << i;
  FAIL() << shown.size() << " lines became " << again.size();
}

/// Offsets at which records begin, and the end.
inline std::vector<std::size_t> record_offsets(std::string_view file) {
  std::vector<std::size_t> offsets;
  FxtReader reader;
  const auto fed = reader.feed(bytes_of(file), [&](const fxt::Record&) { offsets.push_back(reader.offset()); });
  EXPECT_TRUE(fed) << fed.error().message();
  offsets.push_back(file.size());
  return offsets;
}

}  // namespace rtev::test
