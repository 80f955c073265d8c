// SPDX-License-Identifier: MIT
#include "processes/lifecycle_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "support/immediate_queries.hpp"
#include "support/poll_until.hpp"
#include "support/temp_dir.hpp"

namespace rtev {
namespace {

using testing::ElementsAre;

bool is_readable(int fd, int timeout_ms) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, timeout_ms) == 1;
}

rtev_lifecycle record(rtev_lifecycle_type type, std::uint32_t pid, std::uint64_t time_ns) {
  rtev_lifecycle made{};
  made.type = type;
  made.tgid = pid;
  made.time_ns = time_ns;
  return made;
}

/// The kernel's buffer.
class LifecycleReaderTest : public testing::Test {
 protected:
  static constexpr int timeout_ms = 10'000;

  /// Written as one batch: the reader finds all of it, or nothing.
  void write(const std::vector<rtev_lifecycle>& records) {
    {
      const std::lock_guard lock(mutex_);
      records_.insert(records_.end(), records.begin(), records.end());
    }
    waiting_.signal();
  }
  /// The next read() waits until resume() is called.
  void hold() {
    const std::lock_guard lock(mutex_);
    is_held_ = true;
  }
  void resume() {
    {
      const std::lock_guard lock(mutex_);
      is_held_ = false;
    }
    changed_.notify_all();
  }
  void read(const LifecycleReader::Consumer& consumer) {
    std::unique_lock lock(mutex_);
    waiting_.clear();
    in_read_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !is_held_; });
    while (!records_.empty()) {
      consumer(records_.front(), {});
      records_.pop_front();
    }
    in_read_ = false;
  }
  void await_read() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return in_read_; });
  }
  std::size_t left() {
    const std::lock_guard lock(mutex_);
    return records_.size();
  }
  static std::vector<std::uint64_t> times(const std::vector<ResolvedRecord>& events) {
    std::vector<std::uint64_t> times;
    for (const ResolvedRecord& event : events) times.push_back(event.record.time_ns);
    return times;
  }

  const test::TempDir proc_;
  EventFd waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<rtev_lifecycle> records_;
  bool is_held_ = false, in_read_ = false;
  test::ImmediateQueries queries_{proc_.path()};
  LifecycleReader reader_{queries_,
                          {.fd = waiting_.get(),
                           .read = [this](const LifecycleReader::Consumer& consumer) { read(consumer); },
                           .ring_opened = [](std::int32_t, std::uint64_t) {}}};
};

TEST_F(LifecycleReaderTest, EventsAreTakenInTheOrderOfTheirRecords) {
  EXPECT_FALSE(is_readable(reader_.event_fd(), 0));
  EXPECT_THAT(times(reader_.take()), ElementsAre());
  write({record(RTEV_FORK, 7, 1), record(RTEV_EXEC, 8, 2)});
  write({record(RTEV_EXIT, 8, 3)});
  std::vector<std::uint64_t> taken;
  while (taken.size() < 3) {
    ASSERT_TRUE(is_readable(reader_.event_fd(), timeout_ms));
    for (const std::uint64_t time : times(reader_.take())) taken.push_back(time);
  }
  EXPECT_THAT(taken, ElementsAre(1, 2, 3));
  EXPECT_THAT(times(reader_.take()), ElementsAre());
}

TEST_F(LifecycleReaderTest, ItHasCaughtUpWhenNoRecordWaitsAndNoneIsLookedUp) {
  hold();
  write({record(RTEV_EXEC, 7, 1)});
  EXPECT_FALSE(reader_.has_caught_up()) << "the record is in the kernel's buffer";
  await_read();
  EXPECT_FALSE(reader_.has_caught_up()) << "or being looked up";
  EXPECT_TRUE(reader_.busy_since());
  EXPECT_THAT(times(reader_.take()), ElementsAre());
  resume();
  ASSERT_TRUE(is_readable(reader_.event_fd(), timeout_ms));
  EXPECT_THAT(times(reader_.take()), ElementsAre(1));
  reader_.catch_up();
  EXPECT_TRUE(reader_.has_caught_up());
  EXPECT_FALSE(reader_.busy_since());
}

TEST_F(LifecycleReaderTest, StopReadsWhatWaits) {
  hold();
  write({record(RTEV_EXEC, 7, 1)});
  await_read();
  write({record(RTEV_EXIT, 7, 2)});
  resume();
  reader_.stop();
  EXPECT_THAT(times(reader_.take()), ElementsAre(1, 2));
  reader_.stop();
}

TEST_F(LifecycleReaderTest, RecordsAreLeftInTheKernelsBufferWhileTooManyEventsWait) {
  constexpr std::size_t max_events = 65536;
  write(std::vector(max_events, record(RTEV_FORK, 7, 1)));
  ASSERT_TRUE(is_readable(reader_.event_fd(), timeout_ms));
  write({record(RTEV_EXEC, 8, 2)});
  reader_.catch_up();  // gives up after a while
  EXPECT_FALSE(reader_.has_caught_up());
  EXPECT_EQ(left(), 1u);
  EXPECT_EQ(reader_.take().size(), max_events);
  ASSERT_TRUE(is_readable(reader_.event_fd(), timeout_ms));
  EXPECT_THAT(times(reader_.take()), ElementsAre(2));
}

TEST_F(LifecycleReaderTest, RingsOfImagesThatEndInTheSameBatchAreMarked) {
  write({record(RTEV_RING, 7, 1), record(RTEV_RING, 8, 2), record(RTEV_RING, 9, 3), record(RTEV_EXIT, 7, 4),
         record(RTEV_EXEC, 8, 5), record(RTEV_RING, 8, 6), record(RTEV_FORK, 9, 7)});
  ASSERT_TRUE(is_readable(reader_.event_fd(), timeout_ms));
  std::vector<std::uint64_t> ended;
  for (const ResolvedRecord& event : reader_.take()) {
    if (event.image_ended) ended.push_back(event.record.time_ns);
  }
  EXPECT_THAT(ended, ElementsAre(1, 2)) << "not the ring of the next image, nor that of a process that goes on";
}

/// A process that does not answer before it is released, beside others that do.
class SilentProcess final : public ProcessQueries {
 public:
  SilentProcess(const std::filesystem::path& proc, std::int32_t pid) : others_(proc), pid_(pid) {}

  void ask(ProcessQuery query, std::uint32_t user, Answer answer) override {
    if (query.pid != pid_) return others_.ask(std::move(query), user, std::move(answer));
    silent_ = std::move(answer);
  }
  void release() {
    released_ = true;
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(event_fd(), &one, sizeof one), ssize_t{sizeof one});
  }
  int event_fd() const override { return others_.event_fd(); }
  void process(std::uint64_t now_ns) override {
    others_.process(now_ns);
    if (released_ && silent_) std::exchange(silent_, {})(ProcessView());
  }
  std::optional<std::uint64_t> next_deadline_ns() const override { return std::nullopt; }
  bool is_idle() const override { return false; }

 private:
  test::ImmediateQueries others_;
  std::int32_t pid_;
  Answer silent_;
  std::atomic<bool> released_ = false;
};

TEST(LifecycleReaderAlone, AProcessThatDoesNotAnswerHoldsBackItsOwnEventsOnly) {
  const test::TempDir proc;
  SilentProcess queries(proc.path(), 7);
  EventFd waiting;
  std::mutex mutex;
  std::deque<rtev_lifecycle> records{record(RTEV_EXEC, 7, 1), record(RTEV_EXEC, 8, 2), record(RTEV_FORK, 7, 3),
                                     record(RTEV_EXIT, 8, 4)};
  records[2].peer = 9;
  records.push_back(record(RTEV_EXEC, 9, 5));
  waiting.signal();
  LifecycleReader reader(queries, {.fd = waiting.get(),
                                   .read =
                                       [&](const LifecycleReader::Consumer& consumer) {
                                         const std::lock_guard lock(mutex);
                                         waiting.clear();
                                         for (; !records.empty(); records.pop_front()) consumer(records.front(), {});
                                       },
                                   .ring_opened = [](std::int32_t, std::uint64_t) {}});
  std::vector<std::uint64_t> times;
  std::vector<bool> answered;
  const auto take = [&](std::size_t events) {
    while (times.size() < events) {
      ASSERT_TRUE(is_readable(reader.event_fd(), 10'000));
      for (const ResolvedRecord& event : reader.take()) {
        times.push_back(event.record.time_ns);
        answered.push_back(event.answered);
      }
    }
  };
  take(2);
  EXPECT_FALSE(reader.has_caught_up());
  queries.release();
  take(5);
  EXPECT_THAT(times, ElementsAre(2, 4, 1, 3, 5)) << "a child comes after its fork";
  EXPECT_THAT(answered, ElementsAre(true, false, true, false, true));
  EXPECT_TRUE(test::poll_until([&] { return !reader.busy_since(); })) << "set after the last events are there";
}

}  // namespace
}  // namespace rtev
