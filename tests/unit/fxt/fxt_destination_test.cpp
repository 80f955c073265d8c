// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/unique_fd.hpp"
#include "support/files.hpp"
#include "support/temp_dir.hpp"
#include "unit/fxt/written_trace.hpp"

namespace rtev::fxt {
namespace {

using testing::Each;
using testing::Le;

/// Records of all sizes, small and large.
void write_some(FxtWriter& writer) {
  const ComposedEvent begin =
      writer.compose(duration_begin, writer.thread(1, 2), writer.intern("gc"), writer.intern("minor"));
  const ComposedEvent text = writer.compose(instant, writer.thread(1, 3), {}, writer.intern("text"),
                                            {{ArgumentType::string, writer.intern("a name")}});
  for (std::size_t i = 0; i < 50; ++i) {
    writer.write(begin, i);
    writer.write(text, i, std::string(i * i % 200, 'x'));
    writer.write(Wakeup{.time = i, .tid = 9, .weight = 1}, {{"inline", 2.0}});
  }
}

TraceWords words_of(std::string_view bytes) {
  TraceWords words(bytes.size() / word_bytes);
  EXPECT_EQ(bytes.size() % word_bytes, 0u);
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * word_bytes);
  return words;
}

TraceWords expected_words() {
  FxtMemory memory;
  FxtWriter writer(memory);
  write_some(writer);
  writer.flush();
  return {memory.words().begin(), memory.words().end()};
}

TEST(FxtDestination, MemoryKeepsEverythingUntilCleared) {
  const TraceWords all = expected_words();
  FxtMemory memory;
  FxtWriter writer(memory);
  EXPECT_TRUE(memory.words().empty());  // before the first flush
  write_some(writer);
  EXPECT_EQ(writer.flush(), Status::written);
  EXPECT_EQ(TraceWords(memory.words().begin(), memory.words().end()), all);
  memory.clear();
  writer.buffer_full();
  writer.flush();
  EXPECT_EQ(memory.words().size(), 1u);
}

TEST(FxtDestination, NoRecordIsCutBetweenBuffers) {
  const TraceWords all = expected_words();
  for (const std::size_t buffer_words : {0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 100, 100000}) {
    TraceWords seen;
    FxtCallback callback(
        [&](std::span<const std::byte> records) -> Result<void> {
          const TraceWords words = words_of({reinterpret_cast<const char*>(records.data()), records.size()});
          EXPECT_FALSE(record_sizes(words).empty());
          seen.insert(seen.end(), words.begin(), words.end());
          return {};
        },
        buffer_words);
    FxtWriter writer(callback);
    write_some(writer);
    EXPECT_EQ(writer.flush(), Status::written);
    EXPECT_EQ(seen, all) << buffer_words;
  }
}

TEST(FxtDestination, DestructorOfTheWriterFlushes) {
  FxtMemory memory;
  {
    const FxtWriter writer(memory);
  }
  EXPECT_EQ(memory.words().size(), 5u);
}

/// Accepts `good` calls of a function, then fails. Its buffers have 8 words.
class Failing final : public FxtDestination {
 public:
  enum class At { buffer, accept, flush, small };
  Failing(At at, int good) : at_(at), good_(good) {}

  Result<std::span<std::uint64_t>> buffer(std::size_t) override {
    if (at_ == At::buffer && good_-- <= 0) return std::unexpected(error());
    if (at_ == At::small && good_-- <= 0) return std::span(words_).first(1);
    return std::span(words_);
  }
  Result<void> accept(std::span<const std::uint64_t> records) override {
    EXPECT_FALSE(failed_) << "called after a failure";
    if (at_ == At::accept && good_-- <= 0) return std::unexpected(error());
    accepted_ += records.size();
    return {};
  }
  Result<void> flush() override {
    if (at_ == At::flush && good_-- <= 0) return std::unexpected(error());
    return {};
  }
  std::size_t accepted() const { return accepted_; }

 private:
  Error error() {
    failed_ = true;
    return {.what = "cannot write to", .subject = "nowhere", .why = "it is not there"};
  }

  std::array<std::uint64_t, 8> words_{};
  At at_;
  int good_;
  bool failed_ = false;
  std::size_t accepted_ = 0;
};

TEST(FxtDestination, NothingIsWrittenAfterAFailure) {
  for (const auto at : {Failing::At::buffer, Failing::At::accept, Failing::At::flush}) {
    Failing destination(at, 2);
    FxtWriter writer(destination);
    const ComposedEvent begin = writer.compose(duration_begin, writer.thread(1, 1), {}, {});
    const ComposedEvent other = writer.compose(instant, {1}, {}, {}, {{ArgumentType::int32, {}}});
    writer.write(begin, 1, 5);  // a refusal, which the failure replaces
    int written = 0;
    for (; written < 1000; ++written) {
      if (writer.write(begin, 1) != Status::written || (written % 4 == 0 && writer.flush() != Status::written)) break;
    }
    EXPECT_LT(written, 1000);
    EXPECT_TRUE(writer.failed());
    EXPECT_EQ(writer.error()->message(), "cannot write to nowhere: it is not there");
    const std::size_t accepted = destination.accepted();
    EXPECT_EQ(writer.write(begin, 1), Status::failed);
    EXPECT_EQ(writer.write(other, 1, 2), Status::failed);
    EXPECT_EQ(writer.write(other, 1), Status::failed);
    EXPECT_EQ(writer.write(UserspaceObject{}), Status::failed);
    EXPECT_EQ(writer.intern("a"), StringRef{});
    EXPECT_EQ(writer.temporary("a"), StringRef{});
    EXPECT_EQ(writer.set_string(1, "a"), StringRef{});
    EXPECT_EQ(writer.thread(1, 1), ThreadRef{});
    EXPECT_EQ(writer.set_thread(1, 1, 1), ThreadRef{});
    EXPECT_EQ(writer.buffer_full(), Status::failed);
    EXPECT_EQ(writer.flush(), Status::failed);
    EXPECT_EQ(destination.accepted(), accepted);
    EXPECT_EQ(writer.error()->subject, "nowhere");
    EXPECT_EQ(writer.refused(), 1u);
  }
}

TEST(FxtDestination, BufferTooSmallForARecordIsAFailure) {
  Failing destination(Failing::At::small, 1);
  FxtWriter writer(destination);
  writer.flush();
  EXPECT_EQ(writer.name_process(1, "x"), Status::failed);
  EXPECT_THAT(writer.error()->message(), HasSubstr("buffer has 1 words, a record 3"));
}

class FxtFileTest : public testing::Test {
 protected:
  const test::TempDir directory_;
  const std::filesystem::path path_ = directory_.path() / "trace.fxt";
};

TEST_F(FxtFileTest, FileIsPrivateAndComplete) {
  {
    std::ofstream(path_) << std::string(100'000, 'x');  // create() empties it
    auto file = FxtFile::create(path_);
    ASSERT_TRUE(file);
    FxtFile moved = std::move(*file);
    FxtWriter writer(moved);
    write_some(writer);
    EXPECT_EQ(writer.flush(), Status::written);
    EXPECT_EQ(words_of(test::read_file(path_)), expected_words());
    EXPECT_TRUE(moved.close());
    writer.buffer_full();
    EXPECT_EQ(writer.flush(), Status::failed);
    EXPECT_EQ(writer.error()->code, EBADF);
  }
  const auto other = directory_.path() / "new.fxt";
  ASSERT_TRUE(FxtFile::create(other));
  struct stat status{};
  ASSERT_EQ(::stat(other.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(FxtFileTest, ErrorsNameTheFile) {
  const auto file = FxtFile::create(directory_.path() / "missing" / "trace.fxt");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ENOENT);
  EXPECT_THAT(file.error().message(), AllOf(HasSubstr("missing/trace.fxt"), HasSubstr("No such file")));
}

TEST_F(FxtFileTest, FullDiskLeavesWholeRecords) {
  const TraceWords all = expected_words();
  for (const std::size_t bytes : {1u, 8u, 47u, 48u, 1000u, 1001u, 1009u, 4096u}) {
    auto file = FxtFile::create(path_);
    ASSERT_TRUE(file);
    {
      const test::FileSizeLimit limit(bytes);
      FxtWriter writer(*file);
      write_some(writer);
      EXPECT_EQ(writer.flush(), Status::failed);
      EXPECT_EQ(writer.error()->code, EFBIG);
      EXPECT_EQ(writer.error()->subject, path_);
    }
    const TraceWords written = words_of(test::read_file(path_));
    record_sizes(written);
    EXPECT_LE(written.size() * word_bytes, bytes);
    EXPECT_GT(written.size() * word_bytes + 40 * word_bytes, bytes);  // only the last record is missing
    EXPECT_TRUE(std::equal(written.begin(), written.end(), all.begin()));
  }
}

TEST(FxtPipe, WaitsForASlowReader) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
  UniqueFd in(ends[0]), out(ends[1]);
  ::fcntl(out.get(), F_SETPIPE_SZ, 4096);
  ::fcntl(in.get(), F_SETFL, 0);
  std::string read;
  std::thread reader([&] {
    char buffer[512];
    for (ssize_t count = 0; (count = ::read(in.get(), buffer, sizeof buffer)) > 0;)
      read.append(buffer, static_cast<std::size_t>(count));
  });
  {
    FxtFile destination = FxtFile::adopt(out.release(), "a pipe");
    FxtWriter writer(destination);
    write_some(writer);
    EXPECT_EQ(writer.flush(), Status::written);
  }
  reader.join();
  EXPECT_EQ(words_of(read), expected_words());
}

TEST(FxtPipe, ClosedPipeIsAnErrorWithItsName) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  const auto handler = ::signal(SIGPIPE, SIG_IGN);
  FxtFile destination = FxtFile::adopt(ends[1], "standard output");
  FxtWriter writer(destination);
  EXPECT_EQ(writer.flush(), Status::failed);
  EXPECT_EQ(writer.error()->message(), "cannot write to standard output: Broken pipe");
  EXPECT_EQ(writer.error()->code, EPIPE);
  ::signal(SIGPIPE, handler);
}

}  // namespace
}  // namespace rtev::fxt
