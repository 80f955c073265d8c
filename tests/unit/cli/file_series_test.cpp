// SPDX-License-Identifier: MIT
// A stream that is written to one file after the other.
#include "cli/file_series.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "base/clock.hpp"
#include "recording/recording_file.hpp"
#include "support/files.hpp"
#include "support/temp_dir.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

using cli::FileSeries;
using ::testing::HasSubstr;

/// What a file of a series says.
class Reader final : public Sink {
 public:
  void header(const RunHeader& header) override {
    start_ns = header.start_ns;
    realtime_ns = header.start_realtime_ns + (monotonic_ns() - start_ns);
  }
  void consume(const Batch& batch, const Registry& registry) override {
    for (const Event& event : batch.events()) {
      values.push_back(event.value);
      named &= registry.process_of(event) != nullptr && registry.process_of(event)->comm == "server";
    }
  }
  void flush() override {}
  void summary(const RunSummary& summary, const Registry&) override { end = summary; }

  std::uint64_t start_ns = 0;
  std::uint64_t realtime_ns = 0;  ///< of now, by what the header says
  std::vector<std::uint64_t> values;
  bool named = true;
  RunSummary end{.complete = false};
};

Reader read_back(const std::string& path) {
  Reader reader;
  auto file = RecordingFile::open(test::open_file(path), path);
  EXPECT_TRUE(file && *file) << path;
  if (!file || !*file) return reader;
  EXPECT_TRUE((*file)->replay(reader));
  return reader;
}

auto open_series(const std::string& path, cli::DiskOptions disk) {
  cli::OutputOptions options;
  options.path = path;
  options.disk = disk;
  return FileSeries::open(options, Format::fxt);
}

/// Writes numbered events as a live session does.
class FileSeriesTest : public ::testing::Test {
 protected:
  void open(const std::string& name, cli::DiskOptions disk) {
    auto made = open_series(dir_ / name, disk);
    ASSERT_TRUE(made) << made.error().message();
    series_ = std::move(*made);
    series_->header({.start_ns = 1000, .start_realtime_ns = 5000});
  }
  void write(std::uint64_t count) {
    constexpr std::uint64_t at_once = 10'000;
    for (; count > 0 && !series_->has_to_end(); count -= at_once) {
      Events events(world_.slot);
      for (std::uint64_t i = 0; i < at_once; ++i, ++written_)
        events.add(2000 + written_, EventKind::user_int, 3, written_);
      so_far_.events[static_cast<std::size_t>(EventKind::user_int)] = written_;
      series_->consume(events.batch(), world_.registry);
      series_->advance(2000 + written_, world_.registry);
      if (series_->wants_checkpoint()) series_->checkpoint(so_far_, world_.registry);
    }
  }
  void end() {
    so_far_.end_ns = 2000 + written_;
    series_->summary(so_far_, world_.registry);
  }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) found.insert(entry.path().filename());
    return found;
  }

  TempDir dir_;
  World world_;
  RunSummary so_far_{.start_ns = 1000};
  std::uint64_t written_ = 0;
  std::unique_ptr<FileSeries> series_;
};

TEST_F(FileSeriesTest, FilesTogetherHaveAllEventsAndEachIsComplete) {
  open("trace.fxt", {.max_bytes = 1 << 20, .max_files = 100});
  write(300'000);
  end();
  ASSERT_FALSE(series_->output().error());
  const std::size_t files = series_->files();
  ASSERT_GT(files, 3u);
  EXPECT_EQ(series_->removed_files(), 0u);
  EXPECT_EQ(names().size(), files);
  std::uint64_t next = 0, next_start = 1000;
  for (std::size_t number = files; number-- > 0;) {
    const Reader reader =
        read_back(number == 0 ? dir_ / "trace.fxt" : dir_ / ("trace." + std::to_string(number) + ".fxt"));
    std::vector<std::uint64_t> expected(reader.values.size());
    std::iota(expected.begin(), expected.end(), next);
    EXPECT_EQ(reader.values, expected) << number;
    next += expected.size();
    EXPECT_TRUE(reader.named && reader.end.complete) << number;
    EXPECT_EQ(reader.start_ns, next_start) << "one begins where the other ends";
    EXPECT_EQ(reader.end.start_ns, next_start);
    next_start = reader.end.end_ns;
    EXPECT_EQ(reader.end.events[static_cast<std::size_t>(EventKind::user_int)], reader.values.size());
  }
  EXPECT_EQ(next, written_);
}

TEST_F(FileSeriesTest, TimesOfDayOfAFileAreByTheClockWhenItBegan) {
  const std::uint64_t before = clock_ns(CLOCK_REALTIME);
  open("trace.fxt", {.max_bytes = 1 << 20, .max_files = 100});
  write(100'000);
  end();
  ASSERT_GT(series_->files(), 1u);
  EXPECT_LT(read_back(dir_ / ("trace." + std::to_string(series_->files() - 1) + ".fxt")).realtime_ns, before)
      << "the header of the run";
  EXPECT_GE(read_back(dir_ / "trace.fxt").realtime_ns, before) << "the clock was set";
}

TEST_F(FileSeriesTest, OldestFilesGo) {
  open("trace.fxt.gz", {.max_bytes = 256 << 10, .max_files = 3});
  while (series_->files() < 6) write(10'000);
  end();
  EXPECT_EQ(series_->removed_files(), 3u);
  std::uint64_t kept_bytes = 0;
  for (const std::string& name : names()) kept_bytes += std::filesystem::file_size(dir_ / name);
  EXPECT_EQ(series_->written() - series_->removed_bytes(), kept_bytes);
  EXPECT_EQ(names(), (std::set<std::string>{"trace.fxt.gz", "trace.1.fxt.gz", "trace.2.fxt.gz"}));
  EXPECT_TRUE(read_back(dir_ / "trace.2.fxt.gz").end.complete);
  EXPECT_EQ(read_back(dir_ / "trace.fxt.gz").end.end_ns, so_far_.end_ns);
}

TEST_F(FileSeriesTest, EndsAtMaxSize) {
  open("trace.fxt", {.max_bytes = 1 << 20});
  write(1'000'000);
  EXPECT_EQ(series_->ended_by(), FileSeries::Full::max_size);
  end();
  const Reader reader = read_back(dir_ / "trace.fxt");
  EXPECT_TRUE(reader.end.complete);
  EXPECT_EQ(reader.values.size(), written_);
  EXPECT_LT(std::filesystem::file_size(dir_ / "trace.fxt"), 2u << 20);
}

TEST_F(FileSeriesTest, LinkInPlaceOfAnOlderFileIsReplacedNotFollowed) {
  std::ofstream(dir_ / "kept") << "kept";
  std::filesystem::create_symlink("kept", dir_ / "trace.1.fxt");
  open("trace.fxt", {.max_bytes = 256 << 10, .max_files = 2});
  while (series_->files() < 2) write(10'000);
  end();
  EXPECT_FALSE(std::filesystem::is_symlink(dir_ / "trace.1.fxt"));
  EXPECT_EQ(std::filesystem::file_size(dir_ / "kept"), 4u);
}

TEST_F(FileSeriesTest, NextFileThatCannotBeOpenedEndsWithAnErrorAndACompleteFile) {
  open("trace.fxt", {.max_bytes = 256 << 10, .max_files = 2});
  std::filesystem::create_directory(dir_ / "trace.1.fxt");
  while (!series_->output().error()) write(10'000);
  EXPECT_THAT(series_->output().error()->message(), HasSubstr("cannot rename"));
  end();
  EXPECT_TRUE(read_back(dir_ / "trace.fxt").end.complete);
}

TEST_F(FileSeriesTest, FilesOfOtherUsersAreRefusedAtTheBeginning) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  std::ofstream(dir_ / "trace.2.fxt") << "other";
  ASSERT_EQ(::chown((dir_ / "trace.2.fxt").c_str(), 12345, 12345), 0);
  const auto refused = open_series(dir_ / "trace.fxt", {.max_bytes = 256 << 10, .max_files = 3});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().why, HasSubstr("trace.2.fxt belongs to user 12345"));
  EXPECT_TRUE(open_series(dir_ / "trace.fxt", {.max_bytes = 256 << 10, .max_files = 2})) << "it is none of these";
}

TEST_F(FileSeriesTest, LowDiskIsRefusedAtTheBeginning) {
  const auto refused = open_series(dir_ / "trace.fxt", {.min_free = {.share = 1}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().why, HasSubstr("--min-free is 100%"));
  EXPECT_TRUE(names().empty());
  const auto several = open_series("/dev/null", {.max_bytes = 1, .max_files = 2});
  ASSERT_FALSE(several);
  EXPECT_THAT(several.error().why, HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace rtev::test
