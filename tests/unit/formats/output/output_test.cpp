// SPDX-License-Identifier: MIT
#include "formats/output/output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <thread>
#include <vector>

#include "formats/jsonl/jsonl_sink.hpp"
#include "support/files.hpp"
#include "support/temp_dir.hpp"
#include "unit/stream/world.hpp"

namespace rtev {
namespace {

class FdOutputTest : public testing::Test {
 protected:
  void SetUp() override {
    previous_ = std::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    read_.reset(ends[0]);
    write_.reset(ends[1]);
  }
  void TearDown() override { std::signal(SIGPIPE, previous_); }

  std::string read_all() const {
    std::string all;
    std::array<char, 4096> part;
    for (ssize_t n; (n = ::read(read_.get(), part.data(), part.size())) > 0;) {
      all.append(part.data(), static_cast<std::size_t>(n));
    }
    return all;
  }

  UniqueFd read_, write_;
  void (*previous_)(int) = nullptr;
};

TEST_F(FdOutputTest, BorrowsOrOwnsADescriptor) {
  {
    FdOutput borrowed{write_.get(), "pipe"};
    EXPECT_TRUE(borrowed.write("one "));
  }
  {
    FdOutput owned{std::move(write_), "pipe"};
    EXPECT_TRUE(owned.write("two"));
    EXPECT_TRUE(owned.write(""));
    EXPECT_FALSE(owned.error());
  }
  EXPECT_EQ(read_all(), "one two");  // ends only because the descriptor is closed
}

TEST_F(FdOutputTest, WaitsForASlowReaderAlsoWithoutBlocking) {
  ASSERT_EQ(::fcntl(write_.get(), F_SETFL, O_NONBLOCK), 0);
  std::string large;
  while (large.size() < (std::size_t{1} << 20)) large += std::to_string(large.size()) + ' ';
  std::string received;
  std::thread reader{[&] { received = read_all(); }};
  bool complete = false;
  {
    FdOutput output{std::move(write_), "pipe"};
    complete = output.write(large);
  }
  reader.join();
  EXPECT_TRUE(complete);
  EXPECT_EQ(received, large);
}

TEST_F(FdOutputTest, ReportsWhyItCannotWrite) {
  read_.reset();
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const struct {
    int fd, code;
    bool has_hint;
  } cases[] = {{write_.get(), EPIPE, false}, {full.get(), ENOSPC, true}, {-1, EBADF, false}};
  for (const auto& [fd, code, has_hint] : cases) {
    FdOutput output{fd, "stdout"};
    for (const char* text : {"x", "y"}) {
      EXPECT_FALSE(output.write(text));
      ASSERT_TRUE(output.error());
      EXPECT_EQ(output.error()->code, code);
      EXPECT_EQ(output.error()->subject, "stdout");
      EXPECT_EQ(!output.error()->hint.empty(), has_hint) << code;
    }
  }
}

/// Fails after the first write, and counts.
class BreakingOutput final : public Output {
 public:
  bool write(std::string_view) override {
    if (++writes > 1) error_ = Error{.what = "broken"};
    return !error_;
  }
  const std::optional<Error>& error() const override { return error_; }
  int writes = 0;

 private:
  std::optional<Error> error_;
};

TEST(LineSink, WritesLargePiecesAndStopsAfterAFailure) {
  test::World world;
  test::Events events{world.slot};
  for (std::uint64_t i = 0; i < 10'000; ++i) events.add(i, EventKind::begin, test::phase_minor);
  BreakingOutput output;
  JsonlSink sink{output};
  sink.consume(events.batch(), world.registry);
  EXPECT_EQ(output.writes, 2);  // of about twelve
  sink.flush();
  EXPECT_EQ(output.writes, 2);
}

TEST(LineSink, FlushesAnIncompletePiece) {
  test::World world;
  StringOutput output;
  JsonlSink sink{output};
  sink.consume(test::Events{world.slot}.add(1, EventKind::begin, test::phase_minor).batch(), world.registry);
  EXPECT_TRUE(output.text().empty());
  sink.flush();
  EXPECT_EQ(output.text().back(), '\n');
}

TEST(FdOutputFile, RemovesAPieceThatDoesNotFit) {
  const test::TempDir dir;
  const std::string path = dir / "file";
  FdOutput output(UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), path);
  EXPECT_TRUE(output.is_regular_file());
  {
    const test::FileSizeLimit room(100);
    EXPECT_TRUE(output.write(std::string(60, 'a')));
    EXPECT_FALSE(output.write(std::string(60, 'b')));
  }
  ASSERT_TRUE(output.error());
  EXPECT_EQ(output.error()->code, EFBIG);
  EXPECT_EQ(output.error()->subject, path);
  EXPECT_EQ(std::filesystem::file_size(path), 60u);
  EXPECT_EQ(output.written(), 60u);
}

TEST(FdOutputFile, KeepsAnExistingFileUntilBegin) {
  const test::TempDir dir;
  const std::string path = dir / "file";
  const auto open = [&] { return UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)); };
  {
    FdOutput output(open(), path);
    EXPECT_TRUE(output.write("what was there"));
  }
  {
    FdOutput output(open(), path);
    output.wait_for_begin();
    EXPECT_TRUE(output.write("dropped"));
  }
  EXPECT_EQ(std::filesystem::file_size(path), 14u);
  {
    FdOutput output(open(), path);
    output.wait_for_begin();
    output.begin();
    EXPECT_TRUE(output.write("new"));
    EXPECT_EQ(output.written(), 3u);
  }
  EXPECT_EQ(std::filesystem::file_size(path), 3u);
  {
    FdOutput output(open(), path);
    output.wait_for_begin([&] { std::filesystem::remove(path); });
  }
  EXPECT_FALSE(std::filesystem::exists(path)) << "it was created for a run that did not begin";
}

}  // namespace
}  // namespace rtev
