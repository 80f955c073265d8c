// SPDX-License-Identifier: MIT
#include "formats/output/background_output.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "formats/output/gzip_output.hpp"
#include "formats/output/output.hpp"

namespace rtev {
namespace {

using namespace std::chrono_literals;

/// Blocks in write() until the test allows some pieces.
class GatedOutput final : public Output {
 public:
  bool write(std::string_view bytes) override {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_ || taken_ < allowed_; });
    ++taken_;
    if (taken_ > good_) error_ = Error{.what = "broken"};
    if (!error_) text_ += bytes;
    changed_.notify_all();
    return !error_;
  }
  bool sync() override {
    text_ += "|";
    return true;
  }
  bool finish() override {
    text_ += ".";
    return true;
  }
  const std::optional<Error>& error() const override { return error_; }

  void allow(int pieces) {
    const std::lock_guard lock(mutex_);
    allowed_ += pieces;
    changed_.notify_all();
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  /// Breaks after so many pieces.
  void break_after(int pieces) { good_ = pieces; }
  void await_arrivals(int pieces) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ >= pieces; });
  }
  const std::string& text() const { return text_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int allowed_ = 0, arrived_ = 0, taken_ = 0, good_ = 1 << 30;
  bool open_ = false;
  std::string text_;
  std::optional<Error> error_;
};

/// Keeps each piece, and its place in a page of memory.
class PieceOutput final : public Output {
 public:
  bool write(std::string_view bytes) override {
    pieces.emplace_back(bytes);
    places.push_back(reinterpret_cast<std::uintptr_t>(bytes.data()) % 4096);
    return true;
  }
  bool write_pieces(std::string_view bytes, std::span<const std::size_t>) override { return write(bytes); }
  const std::optional<Error>& error() const override { return none_; }

  std::vector<std::string> pieces;
  std::vector<std::size_t> places;

 private:
  std::optional<Error> none_;
};

TEST(BackgroundOutput, KeepsTheOrderOfPiecesAndRequests) {
  GatedOutput slow;
  BackgroundOutput output(slow);
  EXPECT_TRUE(output.write("one "));
  EXPECT_TRUE(output.sync());
  EXPECT_TRUE(output.write("two "));
  EXPECT_TRUE(output.write(""));
  EXPECT_TRUE(output.write("three"));
  slow.open();
  EXPECT_TRUE(output.finish());
  EXPECT_EQ(slow.text(), "one |two three.");
}

TEST(BackgroundOutput, WritesTheQueueInItsDestructor) {
  StringOutput text;
  {
    BackgroundOutput output(text);
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(output.write(std::to_string(i) + ' '));
  }
  std::string expected;
  for (int i = 0; i < 1000; ++i) expected += std::to_string(i) + ' ';
  EXPECT_EQ(text.text(), expected);
}

TEST(BackgroundOutput, BlocksOnlyIfTheQueueIsFull) {
  GatedOutput slow;
  BackgroundOutput output(slow, {.max_bytes = 100});
  const std::string piece(50, 'x');
  EXPECT_TRUE(output.write(piece));
  slow.await_arrivals(1);
  EXPECT_TRUE(output.write(piece));  // now 100 bytes are not written
  std::promise<void> begun;
  auto third = std::async(std::launch::async, [&] {
    begun.set_value();
    return output.write(piece);
  });
  begun.get_future().wait();
  EXPECT_EQ(third.wait_for(20ms), std::future_status::timeout) << "there was no room";
  slow.allow(1);
  EXPECT_TRUE(third.get());
  slow.open();
  EXPECT_TRUE(output.finish());
  EXPECT_EQ(slow.text(), std::string(150, 'x') + ".");
}

TEST(BackgroundOutput, AcceptsAPieceLargerThanTheQueue) {
  StringOutput text;
  BackgroundOutput output(text, {.max_bytes = 10});
  EXPECT_TRUE(output.write("short"));
  EXPECT_TRUE(output.write("much longer than ten"));
  EXPECT_TRUE(output.finish());
  EXPECT_EQ(text.text(), "shortmuch longer than ten");
}

TEST(BackgroundOutput, JoinsPiecesUpToTheNextSync) {
  PieceOutput pieces;
  BackgroundOutput output(pieces, {.together_bytes = 10});
  for (const char* piece : {"1234", "5678", "90a", "b", "0123456789", "c"}) EXPECT_TRUE(output.write(piece));
  EXPECT_TRUE(output.sync());
  EXPECT_TRUE(output.write("d"));
  EXPECT_TRUE(output.write("much longer than ten"));
  EXPECT_TRUE(output.finish());
  EXPECT_EQ(pieces.pieces,
            (std::vector<std::string>{"12345678", "90ab", "0123456789", "c", "d", "much longer than ten"}))
      << "pieces stay whole";
}

TEST(BackgroundOutput, WritesJoinedPiecesWhenTheQueueIsFull) {
  PieceOutput pieces;
  BackgroundOutput output(pieces, {.max_bytes = 10, .together_bytes = 100});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(output.write("12345678"));
  EXPECT_TRUE(output.finish());
  EXPECT_EQ(pieces.pieces, (std::vector<std::string>(3, "12345678")));
}

/// Bytes with the same place in a page of memory as in the file can be written past the page cache.
TEST(BackgroundOutput, AlignsBytesInMemoryAsInTheFile) {
  PieceOutput pieces;
  BackgroundOutput output(pieces);
  for (const std::size_t size : {5000, 1, 70'000, 4096, 123}) EXPECT_TRUE(output.write(std::string(size, 'x')));
  EXPECT_TRUE(output.finish());
  EXPECT_EQ(pieces.places, (std::vector<std::size_t>{0, 5000 % 4096, 5001 % 4096, 75'001 % 4096, 79'097 % 4096}));
}

TEST(BackgroundOutput, ReportsAFailureAndDropsTheRest) {
  GatedOutput slow;
  slow.break_after(1);
  BackgroundOutput output(slow);
  EXPECT_TRUE(output.write("good "));
  EXPECT_TRUE(output.write("bad "));
  EXPECT_TRUE(output.write("never tried"));
  EXPECT_FALSE(output.error()) << "nothing was written yet";
  slow.open();
  EXPECT_FALSE(output.finish());
  ASSERT_TRUE(output.error());
  EXPECT_EQ(output.error()->what, "broken");
  EXPECT_EQ(slow.text(), "good ");
  EXPECT_FALSE(output.write("more"));
  EXPECT_FALSE(output.sync());
  EXPECT_FALSE(output.finish());
}

TEST(BackgroundOutput, AFailureEndsTheWaitForRoom) {
  GatedOutput slow;
  slow.break_after(0);
  BackgroundOutput output(slow, {.max_bytes = 10});
  EXPECT_TRUE(output.write("0123456789"));
  slow.await_arrivals(1);
  auto blocked = std::async(std::launch::async, [&] { return output.write("more"); });
  slow.open();
  blocked.wait();
  EXPECT_FALSE(output.finish());
}

TEST(BackgroundOutput, HasNoThreadBeforeItWrites) {
  StringOutput text;
  BackgroundOutput output(text);
  EXPECT_FALSE(output.error());
  EXPECT_TRUE(output.finish());
  EXPECT_EQ(text.text(), "");
}

TEST(BackgroundOutput, EndsACompressedFile) {
  StringOutput direct, text;
  GzipOutput reference(direct), gzip(text);
  EXPECT_TRUE(reference.write("data"));
  EXPECT_TRUE(reference.finish());
  {
    BackgroundOutput output(gzip);
    EXPECT_TRUE(output.write("data"));
    EXPECT_TRUE(output.finish());
    EXPECT_TRUE(output.sync()) << "after the end there is nothing to sync";
    EXPECT_FALSE(output.error());
  }
  EXPECT_EQ(text.text(), direct.text());
}

}  // namespace
}  // namespace rtev
