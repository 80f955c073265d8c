// SPDX-License-Identifier: MIT
#include "session/live/ring_poller.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ring/reader_access.hpp"
#include "support/ring_file_builder.hpp"
#include "support/temp_dir.hpp"
#include "unit/session/live/ringless_world.hpp"

namespace rtev {
namespace {

using test::milli;
using test::second;
using testing::ElementsAre;
using testing::Pair;

/// Words that one read of a ring takes, and that are read after the end of a program.
constexpr std::uint64_t quantum_words = 1 << 17, last_words = 1 << 23;

constexpr std::uint64_t max_delay_ns = 250 * milli;

class RingPollerTest : public testing::Test {
 protected:
  /// A ring with words that are valid, as many as it has room for.
  test::RingFileBuilder& add(std::uint32_t slot, unsigned words_log2 = 18, std::uint32_t domains = 1, uid_t user = 0) {
    const auto path = dir_ / (std::to_string(slot) + ".events");
    auto& file =
        files_.emplace(slot, test::RingFileBuilder(path, {.domains = domains, .words_log2 = words_log2})).first->second;
    auto reader = RingReaderAccess::adopt(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), path, {.slot = slot},
                                          {.file = {.look_at_pages = [this](std::span<PageRange> ranges) {
                                             for (PageRange& range : ranges) range.state = pages_;
                                           }}});
    poller_.add(slot, slot, user, std::make_shared<RingReader>(std::move(*reader)), now_ns_);
    return file;
  }
  static void fill(test::RingFileBuilder& file, std::uint32_t domain = 0) {
    file.fill(domain, test::make::begin(++time, 1));
  }
  /// Words delivered by a poll, by slot.
  std::map<std::uint32_t, std::uint64_t> poll(std::uint64_t after_ns = milli) {
    now_ns_ += after_ns;
    delivered_.clear();
    poller_.poll(now_ns_, RingPoller::Which::active, {.take = [this](std::uint32_t) { return activity_; }});
    return delivered_;
  }

  static inline std::uint64_t time = 0;
  const test::TempDir dir_;
  std::uint64_t now_ns_ = second;
  std::map<std::uint32_t, std::uint64_t> delivered_;
  std::size_t staged_ = 0, room_ = SIZE_MAX;
  RingPoller::Room wanted_ = RingPoller::any_room;
  std::optional<uid_t> without_room_{};
  PageState pages_ = PageState::ready;       ///< of each file
  std::optional<std::uint32_t> waits_of_{};  ///< slot of a ring for which the thread waits
  std::uint64_t reading_ns_ = 0;             ///< what a batch takes
  std::function<void()> meanwhile_ = [] {};  ///< at each look at the clock
  std::map<std::uint32_t, test::RingFileBuilder> files_;
  kernel::RingActivity activity_{.ran = true};
  RingPoller poller_{
      [this](const Batch& batch) {
        staged_ += batch.events().size();
        now_ns_ += reading_ns_;
        if (waits_of_ == Source::unpack(batch.events().front().source).slot) ::poll(nullptr, 0, 21);
        delivered_[Source::unpack(batch.events().front().source).slot] += 2 * batch.events().size();
      },
      [this](uid_t user) { return staged_ < room_ && user != without_room_ ? wanted_ : RingPoller::no_room; },
      max_delay_ns,
      [this] {
        meanwhile_();
        return now_ns_;
      }};
};

TEST_F(RingPollerTest, RingsAreReadToTheirEnd) {
  fill(add(1));
  fill(add(2));
  const auto delivered = poll();
  EXPECT_EQ(delivered.at(1), files_.at(1).tail(0));
  EXPECT_EQ(delivered.at(2), files_.at(2).tail(0));
  EXPECT_FALSE(poller_.behind_since_ns());
}

TEST_F(RingPollerTest, UsersTakeTurns) {
  for (std::uint32_t slot = 1; slot <= 80; ++slot) fill(add(slot));
  // Of another user, the newest of all.
  fill(add(81, 18, 1, 1));
  const auto delivered = poll();
  EXPECT_EQ(delivered.at(81), files_.at(81).tail(0)) << "whatever the other user has";
  EXPECT_LT(delivered.size(), 81u) << "the budget is used up";
  EXPECT_TRUE(poller_.behind_since_ns());
  std::map<std::uint32_t, std::uint64_t> all = delivered;
  for (int polls = 0; polls < 5; ++polls)
    for (const auto& [slot, words] : poll()) all[slot] += words;
  for (std::uint32_t slot = 1; slot <= 81; ++slot) EXPECT_EQ(all[slot], files_.at(slot).tail(0)) << slot;
  EXPECT_FALSE(poller_.behind_since_ns());
}

TEST_F(RingPollerTest, KnowsWhetherThereAreSeveralUsers) {
  for (const std::uint32_t slot : {1u, 2u}) add(slot);
  poll();
  EXPECT_FALSE(poller_.has_several_users());
  add(3, 18, 1, 1);
  poll();
  EXPECT_TRUE(poller_.has_several_users());
}

TEST_F(RingPollerTest, NothingMoreIsReadWithoutRoom) {
  fill(add(1));
  room_ = 1;
  EXPECT_LE(poll().at(1), quantum_words + 2048);
  EXPECT_TRUE(poll().empty());
  EXPECT_TRUE(poller_.behind_since_ns());
  room_ = SIZE_MAX;
  poll();
  EXPECT_EQ(2 * staged_, files_.at(1).tail(0));
}

TEST_F(RingPollerTest, AUserWithoutRoomDoesNotTakeThatOfOthers) {
  fill(add(1));
  fill(add(2, 18, 1, 1));
  without_room_ = 1;
  EXPECT_THAT(poll(), ElementsAre(Pair(1, files_.at(1).tail(0))));
  EXPECT_TRUE(poller_.behind_since_ns());
}

TEST_F(RingPollerTest, EachRingHasAShortQuantumWhileTheStreamHasABacklog) {
  for (const std::uint32_t slot : {1u, 2u}) fill(add(slot));
  constexpr std::uint64_t short_quantum = 1 << 14;
  wanted_ = {.words = short_quantum, .one_quantum = true};
  const auto read = poll();
  for (const std::uint32_t slot : {1u, 2u}) {
    EXPECT_GT(read.at(slot), 0u);
    EXPECT_LE(read.at(slot), short_quantum + 2048);
  }
  EXPECT_TRUE(poller_.behind_since_ns());
}

TEST_F(RingPollerTest, RingsWithInvalidWordsAreLeftAloneLongerAndLonger) {
  test::RingFileBuilder& file = add(1, 10);
  std::uint64_t polled = 0;
  for (int i = 0; i < 1000; ++i) {
    file.append(0, test::make::begin(++time, 1));
    file.append(0, {0, 0});
    poll(milli);
    polled += !delivered_.empty();
  }
  EXPECT_GT(polled, 3u);
  EXPECT_LT(polled, 15u) << "1, 2, 4 ms and so on";
  Registry registry;
  registry.add_process({});
  poller_.update(registry);
  EXPECT_GE(registry.process(1).left_alone.times, polled - 1) << "the last pause goes on";
  EXPECT_LT(registry.process(1).left_alone.times, 15u);
  EXPECT_GT(registry.process(1).left_alone.ns, 400 * milli);
  EXPECT_LT(registry.process(1).left_alone.ns, second);
  // Once it is valid again, it is read as before.
  poll(2 * second);
  poll(2 * second);
  for (int i = 0; i < 3; ++i) {
    file.append(0, test::make::begin(++time, 1));
    EXPECT_EQ(poll(milli).size(), 1u);
  }
  ProcessInfo info;
  poller_.seal(1, now_ns_);
  EXPECT_TRUE(poller_.read_last(1, now_ns_));
  poller_.finish(1, now_ns_, info, [] { return std::nullopt; });
  EXPECT_EQ(info.left_alone.times, 2u) << "since the update";
  EXPECT_GE(info.left_alone.ns, second);
}

TEST_F(RingPollerTest, RingsAreReadAgainSoonAfterTheirPagesAreReady) {
  fill(add(1, 10));
  pages_ = PageState::busy;
  EXPECT_TRUE(poll().empty());
  pages_ = PageState::ready;
  EXPECT_TRUE(poll(milli / 2).empty()) << "left alone for a while";
  EXPECT_FALSE(poll().empty());
  // However often.
  for (int i = 0; i < 100; ++i) {
    pages_ = PageState::busy;
    poll();
    pages_ = PageState::ready;
    files_.at(1).append(0, test::make::begin(++time, 1));
    EXPECT_EQ(poll(4 * milli).size(), 1u) << i;
  }
}

TEST_F(RingPollerTest, RingsOfWhoMadeTheReaderWaitAreReadForASmallShareOfTheTime) {
  add(1, 10);
  add(2, 10, 1, 1);  // of another user
  reading_ns_ = 30 * milli;
  const auto read = [&](int polls) {
    std::map<std::uint32_t, int> read;
    for (int i = 0; i < polls; ++i) {
      for (const std::uint32_t slot : {1u, 2u}) files_.at(slot).append(0, test::make::begin(++time, 1));
      for (const auto& [slot, words] : poll(10 * milli)) ++read[slot];
      reading_ns_ = 0;
    }
    return read;
  };
  EXPECT_THAT(read(10), ElementsAre(Pair(1, 10), Pair(2, 10))) << "other threads took the time";
  waits_of_ = 1;
  reading_ns_ = 30 * milli;
  EXPECT_THAT(read(90), ElementsAre(Pair(1, 1), Pair(2, 90)));
  EXPECT_GE(read(20)[1], 9) << "a second after it waited";
  reading_ns_ = 30 * milli;
  EXPECT_THAT(read(280), ElementsAre(Pair(1, 1), Pair(2, 280))) << "longer than the first time";
}

TEST_F(RingPollerTest, OnlyDueRingsAreReadUntilEventsHaveToBeReleased) {
  fill(add(1));
  ASSERT_FALSE(poll().empty());
  const std::uint64_t read_ns = now_ns_;
  files_.at(1).append(0, test::make::begin(++time, 1));
  const auto poll_due = [&] {
    delivered_.clear();
    poller_.poll(++now_ns_, RingPoller::Which::due, {.take = [this](std::uint32_t) { return activity_; }});
    return delivered_;
  };
  EXPECT_TRUE(poll_due().empty());
  EXPECT_EQ(poller_.read_until_ns(), read_ns) << "there may be events since then";
  EXPECT_THAT(poll(0), ElementsAre(Pair(1, 2)));
  EXPECT_EQ(poller_.read_until_ns(), now_ns_);

  files_.at(1).append(0, test::make::begin(++time, 1));
  now_ns_ = *poller_.next_poll_ns();
  EXPECT_THAT(poll_due(), ElementsAre(Pair(1, 2)));
}

TEST_F(RingPollerTest, WithARingThatFillsUpOthersAreReadThatWillBeDueSoon) {
  for (const std::uint32_t slot : {1, 2}) add(slot);
  activity_ = {.ran = true, .checked = true};
  poll();
  const auto poll_full = [&](std::uint64_t after_ns) {
    for (auto& [slot, file] : files_) file.append(0, test::make::begin(++time, 1));
    now_ns_ += after_ns;
    delivered_.clear();
    poller_.poll(now_ns_, RingPoller::Which::due, {.take = [](std::uint32_t slot) {
                   return kernel::RingActivity{.ran = true, .checked = true, .fills_up = slot == 1};
                 }});
    return delivered_;
  };
  EXPECT_THAT(poll_full(milli), ElementsAre(Pair(1, 2)));
  EXPECT_THAT(poll_full(max_delay_ns / 2), ElementsAre(Pair(1, 2), Pair(2, 4)));
  EXPECT_THAT(poll_full(milli), ElementsAre(Pair(1, 2)));
}

TEST_F(RingPollerTest, RingsOfProcessesThatDoNotRunAreNotAwaited) {
  add(1);
  now_ns_ += 3 * second;  // since the ring was opened: until then the process may run unseen
  activity_ = {};
  poll();
  EXPECT_FALSE(poller_.next_poll_ns());
  EXPECT_EQ(poller_.read_until_ns(), now_ns_);
  activity_ = {.ran = true};
  poller_.poll(++now_ns_, RingPoller::Which::due, {.take = [this](std::uint32_t) { return activity_; }});
  EXPECT_TRUE(poller_.next_poll_ns());
  activity_ = {};
  for (int looks = 0; looks < 2; ++looks) {
    now_ns_ = poller_.next_poll_ns().value_or(now_ns_);
    poller_.poll(now_ns_, RingPoller::Which::due, {.take = [this](std::uint32_t) { return activity_; }});
  }
  EXPECT_FALSE(poller_.next_poll_ns()) << "after one look at a process that did not run";
}

TEST_F(RingPollerTest, RingsAreReadWhileBpfDoesNotWatchTheirProcesses) {
  fill(add(1));
  now_ns_ += 3 * second;
  activity_ = {.watched = false};
  EXPECT_EQ(poll().at(1), files_.at(1).tail(0));
  activity_ = {};
  now_ns_ += second;
  poll();
  EXPECT_TRUE(poller_.next_poll_ns()) << "a thread may have been running when BPF began to watch";
  now_ns_ += 2 * second;
  poll();
  EXPECT_FALSE(poller_.next_poll_ns());
}

TEST_F(RingPollerTest, TheLastReadWaitsForTheEndOfAShortChange) {
  for (const bool is_short : {true, false}) {
    SCOPED_TRACE(is_short);
    fill(add(1, 10));
    pages_ = PageState::busy;
    int looks = 0;
    meanwhile_ = [&] { pages_ = !is_short || ++looks < 10 ? PageState::busy : PageState::ready; };
    ProcessInfo info;
    poller_.seal(1, now_ns_);
    EXPECT_TRUE(poller_.read_last(1, now_ns_));
    poller_.finish(1, now_ns_, info, [] { return std::nullopt; });
    EXPECT_EQ(info.words.delivered, is_short ? info.words.written : 0);
    EXPECT_EQ(info.words.lost, is_short ? 0 : info.words.written);
    files_.clear();
    pages_ = PageState::ready;
    meanwhile_ = [] {};
  }
}

TEST_F(RingPollerTest, TheLastReadIsBounded) {
  constexpr unsigned words_log2 = 22;
  test::RingFileBuilder& file = add(1, words_log2, 3);
  for (std::uint32_t domain = 0; domain < 3; ++domain) fill(file, domain);
  ProcessInfo info;
  poller_.seal(1, now_ns_);
  EXPECT_TRUE(poller_.read_last(1, now_ns_));
  poller_.finish(1, now_ns_, info, [] { return std::nullopt; });
  EXPECT_TRUE(info.words.balanced());
  EXPECT_EQ(info.words.unread, 0u);
  EXPECT_LE(info.words.delivered, last_words + 2048);
  EXPECT_EQ(info.words.lost, info.words.written - info.words.delivered);
}

TEST_F(RingPollerTest, TheLastReadWaitsForRoom) {
  fill(add(1));
  const std::uint64_t written = files_.at(1).tail(0);
  room_ = 1;
  poller_.seal(1, now_ns_);
  EXPECT_FALSE(poller_.read_last(1, now_ns_));
  EXPECT_LT(2 * staged_, written);
  room_ = SIZE_MAX;
  EXPECT_TRUE(poller_.read_last(1, now_ns_));
  ProcessInfo info;
  poller_.finish(1, now_ns_, info, [] { return std::nullopt; });
  EXPECT_EQ(info.words.delivered, written);
}

TEST_F(RingPollerTest, WordsThatNobodySawAreCountedAsLost) {
  test::RingFileBuilder& file = add(1);
  poll();
  fill(file);
  room_ = 0;
  poller_.seal(1, now_ns_);
  EXPECT_FALSE(poller_.read_last(1, now_ns_));
  ProcessInfo info;
  poller_.finish(1, now_ns_, info, [] { return std::nullopt; });
  EXPECT_EQ(info.words.written, file.tail(0));
  EXPECT_EQ(info.words.lost, info.words.written);
}

TEST_F(RingPollerTest, EndsOfAUsersProgramsTakeOnlySoMuchTime) {
  constexpr std::uint32_t programs = 20;
  constexpr std::uint64_t small_ring = 1 << 12;
  reading_ns_ = milli / 20;  // a ring of 2^20 words takes 26 ms
  std::vector<std::uint64_t> delivered;
  for (std::uint32_t slot = 1; slot <= programs; ++slot) {
    fill(add(slot, 20));
    ProcessInfo info;
    poller_.seal(slot, now_ns_);
    EXPECT_TRUE(poller_.read_last(slot, now_ns_));
    poller_.finish(slot, now_ns_, info, [] { return std::nullopt; });
    EXPECT_TRUE(info.words.balanced());
    delivered.push_back(info.words.delivered);
  }
  EXPECT_EQ(delivered.front(), files_.at(1).tail(0));
  EXPECT_GE(delivered.back(), small_ring) << "the end of a short program is read in any case";
  EXPECT_LE(delivered.back(), small_ring + 2048);
  now_ns_ += 10 * second;
  fill(add(programs + 1, 20));
  ProcessInfo info;
  poller_.seal(programs + 1, now_ns_);
  EXPECT_TRUE(poller_.read_last(programs + 1, now_ns_));
  poller_.finish(programs + 1, now_ns_, info, [] { return std::nullopt; });
  EXPECT_EQ(info.words.lost, 0u) << "later there is time again";
}

TEST_F(RingPollerTest, TheEndOfASessionHasADeadline) {
  fill(add(1));
  poller_.finish_all(now_ns_, 0);
  EXPECT_EQ(staged_, 0u);
  poller_.finish_all(now_ns_, now_ns_ + second);
  EXPECT_EQ(2 * staged_, files_.at(1).tail(0));
}

TEST_F(RingPollerTest, TheEndOfASessionDoesNotWaitForRingsWithInvalidWords) {
  constexpr std::uint32_t domains = 8;
  test::RingFileBuilder& file = add(1, 16, domains);
  std::uint64_t tail = 0;
  meanwhile_ = [&] {
    tail += file.ring_words();
    for (std::uint32_t domain = 0; domain < domains; ++domain) file.set_tail(domain, tail);
    now_ns_ += milli;
  };
  const std::uint64_t start_ns = now_ns_;
  poller_.finish_all(now_ns_, now_ns_ + second);
  EXPECT_LT(now_ns_, start_ns + 100 * milli);
}

}  // namespace
}  // namespace rtev
