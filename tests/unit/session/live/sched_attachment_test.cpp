// SPDX-License-Identifier: MIT
#include "session/live/sched_attachment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <deque>

namespace rtev {
namespace {

using testing::Eq;
using testing::Optional;

class FakeSchedPrograms : public kernel::SchedPrograms {
 public:
  Result<void> attach_sched() override {
    ++attempts;
    EXPECT_FALSE(attached) << "attached twice";
    if (error != 0) return errno_error(error, "cannot attach");
    attached = true;
    return {};
  }
  void detach_sched() override {
    EXPECT_TRUE(attached);
    attached = false;
  }

  bool attached = true;
  int attempts = 0;
  int error = 0;
};

class SchedAttachmentTest : public testing::Test {
 protected:
  static constexpr std::uint64_t ms = 1'000'000, start = 1'000'000 * ms, timeout = SchedAttachment::unused_timeout_ns,
                                 retry = SchedAttachment::retry_interval_ns;

  /// What the background thread does.
  void run_background() {
    for (; !background_.empty(); background_.pop_front()) background_.front()();
  }
  void turn(std::uint64_t now_ns) {
    tasks_.run(now_ns);
    run_background();
  }

  /// A process begins after they were detached. Returns when that is seen.
  std::uint64_t begin_while_detached() {
    turn(start + timeout);
    lives_ = true;
    attachment_.begin();
    return start + 2 * timeout;
  }

  bool lives_ = false;
  FakeSchedPrograms programs_;
  std::deque<std::function<void()>> background_;
  TimedTasks tasks_;
  SchedAttachment attachment_{programs_, [this](std::function<void()> task) { background_.push_back(std::move(task)); },
                              [this] { return lives_; }, tasks_, start};
};

TEST_F(SchedAttachmentTest, DetachesAfterTheStartWithoutProcesses) {
  turn(start + timeout - 1);
  EXPECT_TRUE(attachment_.is_attached());
  EXPECT_THAT(tasks_.next_due_ns(), Optional(start + timeout));
  turn(start + timeout);
  EXPECT_FALSE(programs_.attached);
  EXPECT_FALSE(attachment_.is_attached());
  EXPECT_THAT(tasks_.next_due_ns(), Eq(std::nullopt)) << "nothing to do until a process is tracked";
  turn(start + 10 * timeout);
  EXPECT_EQ(programs_.attempts, 0);
}

TEST_F(SchedAttachmentTest, StaysAttachedWhileAProcessLives) {
  lives_ = true;
  for (std::uint64_t now = start; now < start + 10 * timeout; now += timeout / 2) turn(now);
  EXPECT_TRUE(programs_.attached);
  lives_ = false;
  const std::uint64_t end = start + 10 * timeout;
  attachment_.end(end);
  turn(end + timeout - 1);
  EXPECT_TRUE(programs_.attached) << "the next process may follow";
  turn(end + timeout);
  EXPECT_FALSE(programs_.attached);
}

TEST_F(SchedAttachmentTest, AttachesForAProcessAndDetachesAfterItsEnd) {
  const std::uint64_t begin = begin_while_detached();
  tasks_.run(begin);
  EXPECT_FALSE(attachment_.is_attached()) << "in the background";
  EXPECT_THAT(tasks_.next_due_ns(), Optional(begin + retry));
  run_background();
  EXPECT_TRUE(attachment_.is_attached());
  lives_ = false;
  attachment_.end(begin + ms);
  turn(begin + ms + timeout);
  EXPECT_FALSE(programs_.attached);
}

TEST_F(SchedAttachmentTest, AttachesAgainForAProcessThatBeganMeanwhile) {
  tasks_.run(start + timeout);
  lives_ = true;
  attachment_.begin();
  tasks_.run(start + timeout + ms);
  EXPECT_EQ(background_.size(), 1u) << "not before it is detached";
  EXPECT_THAT(tasks_.next_due_ns(), Optional(start + timeout + ms + retry));
  run_background();
  turn(start + timeout + ms + retry);
  EXPECT_TRUE(programs_.attached);
  EXPECT_TRUE(attachment_.is_attached());
}

TEST_F(SchedAttachmentTest, DetachesIfTheProcessEndedWhileTheyWereBeingAttached) {
  const std::uint64_t begin = begin_while_detached();
  tasks_.run(begin);
  lives_ = false;
  attachment_.end(begin + ms);
  run_background();
  turn(begin + 2 * ms);
  EXPECT_TRUE(programs_.attached);
  turn(begin + ms + timeout);
  EXPECT_FALSE(programs_.attached);
}

TEST_F(SchedAttachmentTest, TakesLateLinksEvenIfNoProcessLivesAnyMore) {
  const std::uint64_t begin = begin_while_detached();
  programs_.error = EINPROGRESS;
  turn(begin);
  EXPECT_THAT(tasks_.next_due_ns(), Optional(begin + retry));
  turn(begin + retry - 1);
  EXPECT_EQ(programs_.attempts, 1);
  lives_ = false;
  attachment_.end(begin + ms);
  turn(begin + retry);
  EXPECT_EQ(programs_.attempts, 2);
  programs_.error = 0;
  turn(begin + 2 * retry);
  EXPECT_TRUE(attachment_.is_attached());
  turn(begin + ms + timeout);
  EXPECT_FALSE(programs_.attached);
}

TEST_F(SchedAttachmentTest, TriesAgainWhileAProcessLives) {
  const std::uint64_t begin = begin_while_detached();
  programs_.error = EMFILE;
  turn(begin);
  turn(begin + retry);
  EXPECT_THAT(tasks_.next_due_ns(), Optional(begin + timeout));
  turn(begin + timeout);
  EXPECT_EQ(programs_.attempts, 2);
  lives_ = false;
  turn(begin + 2 * timeout);
  EXPECT_EQ(programs_.attempts, 2);
  EXPECT_THAT(tasks_.next_due_ns(), Eq(std::nullopt));
}

}  // namespace
}  // namespace rtev
