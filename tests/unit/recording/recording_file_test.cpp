// SPDX-License-Identifier: MIT
// A recording gives its stream back, compressed or not. Every other file is refused, with its kind if it is an export.
#include "recording/recording_file.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "formats/chrome/chrome_sink.hpp"
#include "formats/output/gzip_output.hpp"
#include "formats/perfetto/perfetto_sink.hpp"
#include "support/files.hpp"
#include "support/temp_dir.hpp"
#include "unit/recording/recording.hpp"

namespace rtev::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

void add_process(Events& events, std::uint64_t time, ProcessIndex index, ProcessAction action,
                 std::int64_t detail = 0) {
  events.add_record(time, EventKind::process, ProcessRecord{.process = index, .peer = 0, .detail = detail},
                    static_cast<std::uint16_t>(action));
}

/// A stream with an event of every kind.
void stream(Sink& sink) {
  World world;
  world.user_names = {{3, "request"}, {4, "quote \" and \n"}};
  world.registry.process(world.process).words = {.written = 100, .delivered = 90, .lost = 10, .events = 30};
  world.registry.process(world.process).domains = 2;
  sink.header(make_header());
  Events kernel(0);
  add_process(kernel, 1500, world.process, ProcessAction::found);
  add_process(kernel, 1500, world.process, ProcessAction::ring, 128);
  sink.consume(kernel.batch(), world.registry);

  Events ring(world.slot);
  ring.add(2000, EventKind::begin, phase_major)
      .add(2010, EventKind::begin, phase_minor)
      .add(2020, EventKind::end, phase_minor)
      .add(2025, EventKind::begin, unknown_phase)
      .add(2030, EventKind::end, phase_major)
      .add(2040, EventKind::counter, counter_minor_allocated, UINT64_MAX, 1)
      .add_record(2050, EventKind::alloc, std::array<std::uint64_t, alloc_bucket_count>{1, 2, 3})
      .add(2060, Lifecycle::domain_spawn, static_cast<std::uint64_t>(-5), 2)
      .add(2070, EventKind::user_unit, 3)
      .add(2080, EventKind::user_int, 4, static_cast<std::uint64_t>(INT64_MIN))
      .add(2090, EventKind::user_begin, 3)
      .add(2085, EventKind::user_end, 3, 0, 0, flag_late)
      .add(2095, EventKind::user_unit, 99)
      .add_bytes(2100, EventKind::user_custom, all_bytes(), 3)
      .add_record(2110, EventKind::lost, Loss{.words = 12, .from_ns = 0, .to_ns = 2110}, 0)
      .add_record(2120, EventKind::lost, Loss{.words = 3, .from_ns = 2100, .to_ns = 2120}, 1, 3);
  sink.consume(ring.batch(), world.registry);

  Thread ours = make_thread(4242, 4243, "server", true);
  ours.domain = 1;
  ours.role = ThreadRole::backup;
  ours.holds_lock = true;
  const Thread theirs = make_thread(77, 77, "cc1", false);
  Events sched(0);
  for (int state = 0; state <= static_cast<int>(LeftState::other); ++state) {
    sched.add_record(3000 + static_cast<std::uint64_t>(state), EventKind::sched_switch,
                     SchedSwitch{.cpu = 1, .state = static_cast<LeftState>(state), .prev = ours, .next = theirs}, 0, 2);
  }
  sched.add_record(3050, EventKind::lost, Loss{.words = 17, .from_ns = 3050, .to_ns = 3090},
                   static_cast<std::uint16_t>(LossReason::dropped), first_sched_stream + 1);
  sched.add_record(3100, EventKind::wakeup, Wakeup{.cpu = 0, .woken = ours, .by = theirs}, 0, 1);
  world.registry.process(world.process).max_rss_bytes = 67'108'864;
  add_process(sched, 3200, world.process, ProcessAction::exit, 9);
  sink.consume(sched.batch(), world.registry);

  RunSummary summary{.start_ns = 1000, .end_ns = 5000, .late = 1, .forced = 2};
  summary.drops = {{.kind = "switch", .count = 4}, {.kind = "exec", .count = 0}};
  summary.events[0] = 3;
  sink.summary(summary, world.registry);
  sink.flush();
}

template <typename Format>
std::string in_format() {
  StringOutput file;
  Format sink(file);
  stream(sink);
  return file.text();
}

class RecordingFileTest : public ::testing::Test {
 protected:
  struct Read {
    std::string lines{};
    Result<Replay::End> end = Replay::End{};
  };

  Read read(const std::string& bytes) {
    const std::string path = dir / "recording";
    std::ofstream(path, std::ios::binary) << bytes;
    auto file = RecordingFile::open(open_file(path), path);
    if (!file) return {.end = std::unexpected(file.error())};
    if (!*file) return {.end = std::unexpected(Error{.what = "no recording"})};
    StringOutput output;
    JsonlSink jsonl(output);
    Read read;
    read.end = (*file)->replay(jsonl);
    jsonl.flush();
    read.lines = output.text();
    return read;
  }

  TempDir dir;
};

TEST_F(RecordingFileTest, RestoresTheStream) {
  const std::string expected = in_format<JsonlSink>(), bytes = in_format<FxtSink>();
  for (const std::string& file : {bytes, gzip_compressed(bytes)}) {
    const Read back = read(file);
    ASSERT_TRUE(back.end) << back.end.error().message();
    EXPECT_TRUE(back.end->complete) << back.end->note;
    EXPECT_EQ(back.lines, expected);
  }
}

TEST_F(RecordingFileTest, ACutFileIsReadAndReportedAsIncomplete) {
  const std::string bytes = in_format<FxtSink>(), packed = gzip_compressed(bytes);
  for (const std::string& file :
       {bytes.substr(0, bytes.size() - bytes.size() / 10), packed.substr(0, packed.size() - 9)}) {
    const Read back = read(file);
    ASSERT_TRUE(back.end) << back.end.error().message();
    EXPECT_NE(back.end->note, "");
    EXPECT_THAT(back.lines, Not(IsEmpty()));
  }
}

TEST_F(RecordingFileTest, AFileCutBeforeItsFirstEventIsNotCalledForeign) {
  const std::string bytes = in_format<FxtSink>(), packed = gzip_compressed(bytes);
  for (const std::size_t length : {1, 7, 8, 100})
    EXPECT_EQ(read(bytes.substr(0, length)).end.error().why, "it ends before its first event") << length;
  for (const std::size_t length : {2, 5, 20})
    EXPECT_EQ(read(packed.substr(0, length)).end.error().why, "its compressed data is cut before anything can be read")
        << length;
  EXPECT_EQ(read("").end.error().why, "it is empty");
}

TEST_F(RecordingFileTest, NamesCompressionsThatItCannotRead) {
  for (const char* const name : {"\x28\xb5\x2f\xfd"
                                 "zstd",
                                 "BZh9bzip2",
                                 "\xfd"
                                 "7zXZ xz",
                                 "\x04\x22\x4d\x18lz4"}) {
    const std::string why = read(name).end.error().why;
    EXPECT_THAT(name, HasSubstr(why.substr(why.rfind(' ') + 1)));
  }
}

TEST_F(RecordingFileTest, SurvivesDamagedFiles) {
  const std::string bytes = in_format<FxtSink>();
  for (std::size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 100) {
    std::string broken = bytes;
    broken[at] = static_cast<char>(broken[at] ^ (1 << (at % 8)));
    const Read back = read(broken);
    EXPECT_TRUE(back.end || !back.end.error().what.empty());
  }
}

TEST_F(RecordingFileTest, RefusesExportsAndNamesTheirFormat) {
  const std::pair<std::string, std::string> exports[] = {
      {in_format<JsonlSink>(), "JSON lines"},
      {in_format<ChromeSink>(), "Chrome"},
      {in_format<PerfettoSink>(), "Perfetto"},
      {"{\"traceEvents\":[]}", "Chrome"},
      {"[ {\"ph\":\"i\",\"ts\":1}]", "Chrome"},
      {std::string("\n\x02\x40\x01", 4), "Perfetto"},
      {"\n\x04\x08\x01\x10\x02", "a profile in pprof's format"},
      {R"({"$schema":"https://www.speedscope.app/file-format-schema.json"})", "a profile for speedscope"},
      {"\n<!doctype html>\n<html>", "a page"},
      {R"({"type":"stats","schema":1})", "a report"},
      {"PERFILE2", "a recording of perf"}};
  for (const auto& [bytes, format] : exports) {
    for (const std::string& file : {bytes, gzip_compressed(bytes)}) {
      const Read back = read(file);
      ASSERT_FALSE(back.end) << format;
      EXPECT_THAT(back.end.error().why, HasSubstr(format));
      EXPECT_THAT(back.end.error().hint, HasSubstr(".fxt"));
    }
  }
}

TEST_F(RecordingFileTest, OtherFilesAreNotRecordings) {
  for (const char* text : {"x",
                           "\x7f"
                           "ELF",
                           "{\"type\":\"other\"}", "\n", "\n\n", "[1, 2]", "# text\n"}) {
    const Read back = read(text);
    ASSERT_FALSE(back.end) << text;
    EXPECT_EQ(back.end.error().what, "no recording") << text;
  }
}

TEST_F(RecordingFileTest, AFileThatCannotBeReadIsAnError) {
  EXPECT_FALSE(RecordingFile::open(UniqueFd(), "closed"));
  EXPECT_FALSE(RecordingFile::open(open_file(dir.path()), "folder"));
}

}  // namespace
}  // namespace rtev::test
