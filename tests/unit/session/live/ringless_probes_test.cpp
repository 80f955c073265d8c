// SPDX-License-Identifier: MIT
#include "session/live/ringless_probes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "unit/session/live/ringless_world.hpp"

namespace rtev {
namespace {

using test::milli;
using test::probed_id;
using test::second;
using testing::ElementsAre;
using testing::Eq;
using testing::IsEmpty;
using testing::Optional;

/// Of the program that is too fast, and another one.
constexpr std::uint32_t user = 1000, other_user = 1001;

class RinglessProbesTest : public testing::Test {
 protected:
  RinglessProbesTest() { probes_.prepare(STDIN_FILENO, test::probed_binary(probed_id).runtime, {.id = probed_id}); }

  /// A turn of the session, with a background thread that keeps up. Returns what was attached.
  std::vector<RinglessProbes::Attached> turn(std::uint64_t now_ns) {
    world_.timed.run(now_ns);
    world_.tasks.run_all();
    return probes_.take_attached();
  }
  /// Attaches to the binary.
  void attach() {
    probes_.attach_for_next(probed_id, user);
    ASSERT_EQ(turn(start_).size(), 1u);
  }

  const std::uint64_t start_ = monotonic_ns();  // the clock of UprobeManager
  test::RinglessWorld world_;
  RinglessProbes probes_{world_.programs, world_.table, world_.timed,
                         [this](std::function<bool()> task) { world_.tasks.add(std::move(task)); }};
};

TEST_F(RinglessProbesTest, WaitUntilAProcessWouldHaveItsRing) {
  world_.add(70, probed_id, start_);
  probes_.consider(probed_id);
  EXPECT_THAT(turn(start_ + 19 * milli), IsEmpty());
  EXPECT_THAT(world_.timed.next_due_ns(), Optional(start_ + 20 * milli));
  const auto attached = turn(start_ + 20 * milli);
  ASSERT_EQ(attached.size(), 1u);
  EXPECT_EQ(attached[0].binary, probed_id);
  EXPECT_FALSE(attached[0].after_gap);
  EXPECT_THAT(world_.timed.next_due_ns(), Eq(std::nullopt));
  probes_.consider(probed_id);
  EXPECT_THAT(turn(start_ + 40 * milli), IsEmpty()) << "attached already";
  EXPECT_THAT(world_.programs.probed, ElementsAre(probed_id));
}

TEST_F(RinglessProbesTest, AttachAtOnceToWhatRanBefore) {
  world_.add(70, probed_id, start_, ProcessAction::found);
  probes_.consider(probed_id);
  EXPECT_EQ(turn(start_).size(), 1u);
}

TEST_F(RinglessProbesTest, DoNotAttachIfTheProcessEndedOrHasARing) {
  world_.add(70, probed_id, start_);
  probes_.consider(probed_id);
  world_.table.erase(70);
  EXPECT_THAT(turn(start_ + second), IsEmpty());
  EXPECT_THAT(world_.timed.next_due_ns(), Eq(std::nullopt));
}

TEST_F(RinglessProbesTest, ReportAllEventsOnlyWhileAttached) {
  EXPECT_FALSE(probes_.is_attached(probed_id));
  EXPECT_FALSE(probes_.reports_all(probed_id, start_));
  probes_.attach_for_next(probed_id, user);
  const auto attached = turn(start_);
  ASSERT_EQ(attached.size(), 1u);
  EXPECT_TRUE(probes_.is_attached(probed_id));
  EXPECT_FALSE(probes_.reports_all(probed_id, attached[0].time_ns - 1));
  EXPECT_TRUE(probes_.reports_all(probed_id, attached[0].time_ns));
  probes_.exceeded_limit(probed_id, user);
  turn(start_);
  EXPECT_TRUE(probes_.is_in_gap(probed_id));
  EXPECT_FALSE(probes_.is_attached(probed_id));
  EXPECT_FALSE(probes_.reports_all(probed_id, attached[0].time_ns));
}

TEST_F(RinglessProbesTest, StayDetachedForLongerEachTimeAProgramIsTooFast) {
  attach();
  std::uint64_t now = start_;
  for (const std::uint64_t pause : {1, 2, 4, 8, 16, 32, 32}) {
    probes_.exceeded_limit(probed_id, user);
    EXPECT_THAT(turn(now), IsEmpty());
    EXPECT_THAT(world_.timed.next_due_ns(), Optional(now + pause * second));
    EXPECT_THAT(turn(now + pause * second - 1), IsEmpty());
    now += pause * second;
    const auto attached = turn(now);
    ASSERT_EQ(attached.size(), 1u) << pause;
    EXPECT_TRUE(attached[0].after_gap);
    EXPECT_FALSE(probes_.is_in_gap(probed_id));
  }
  EXPECT_EQ(probes_.gaps(), 7u);
  now += 200 * second;
  probes_.exceeded_limit(probed_id, user);
  turn(now);
  EXPECT_THAT(world_.timed.next_due_ns(), Optional(now + second)) << "it was not too fast for long";
}

TEST_F(RinglessProbesTest, HaveOneGapForAllProgramsThatExceedTheLimit) {
  attach();
  for (int i = 0; i < 3; ++i) {
    probes_.exceeded_limit(probed_id, user);
    turn(start_ + static_cast<std::uint64_t>(i) * milli);
  }
  probes_.attach_for_next(probed_id, user);
  probes_.consider(probed_id);
  EXPECT_THAT(turn(start_ + 4 * milli), IsEmpty()) << "not before the gap ends";
  EXPECT_EQ(probes_.gaps(), 1u);
}

/// BPF reports once that a process exceeded its limit, perhaps before it is known that the probes are attached again.
TEST_F(RinglessProbesTest, DetachAgainAProgramThatIsTooFastAsTheyAreAttached) {
  attach();
  probes_.exceeded_limit(probed_id, user);
  turn(start_);
  world_.timed.run(start_ + second);
  probes_.exceeded_limit(probed_id, user);
  world_.timed.run(start_ + second + milli);
  world_.tasks.run_all();
  EXPECT_EQ(probes_.take_attached().size(), 1u);
  EXPECT_FALSE(probes_.is_in_gap(probed_id));
  turn(start_ + second + 2 * milli);
  EXPECT_TRUE(probes_.is_in_gap(probed_id));
  EXPECT_EQ(probes_.gaps(), 2u);
}

TEST_F(RinglessProbesTest, StayAttachedWhileOtherUsersRunTheBinary) {
  attach();
  world_.add(70, probed_id, start_, ProcessAction::exec, user);
  world_.add(71, probed_id, start_, ProcessAction::exec, other_user);
  for (int i = 0; i < 3; ++i) probes_.exceeded_limit(probed_id, user);
  turn(start_);
  EXPECT_TRUE(probes_.is_attached(probed_id));
  EXPECT_FALSE(probes_.is_in_gap(probed_id));
  EXPECT_EQ(probes_.gaps(), 3u) << "of three processes";
  EXPECT_THAT(world_.timed.next_due_ns(), Eq(std::nullopt));
  world_.table.erase(71);
  probes_.exceeded_limit(probed_id, user);
  turn(start_);
  EXPECT_TRUE(probes_.is_in_gap(probed_id)) << "nobody else runs it now";
  EXPECT_EQ(probes_.gaps(), 4u);
}

TEST_F(RinglessProbesTest, StayAttachedForUsersWhoRanTheBinaryLately) {
  attach();
  const auto is_detached = [&](std::uint64_t now_ns) {
    probes_.exceeded_limit(probed_id, user);
    turn(now_ns);
    return probes_.is_in_gap(probed_id);
  };
  probes_.on_end(probed_id, other_user, start_);
  for (int i = 0; i < 3; ++i) probes_.on_end(probed_id, user, start_ + second);
  EXPECT_FALSE(is_detached(start_ + 59 * second));
  probes_.detach_unused(start_ + 61 * second);
  EXPECT_TRUE(is_detached(start_ + 61 * second));
}

TEST_F(RinglessProbesTest, AreAttachedAgainForAProcessOfAnotherUser) {
  attach();
  world_.add(70, probed_id, start_, ProcessAction::found, user);
  const auto begin_gap = [&] {
    probes_.exceeded_limit(probed_id, user);
    turn(start_);
    ASSERT_TRUE(probes_.is_in_gap(probed_id));
  };
  begin_gap();
  world_.add(71, probed_id, start_, ProcessAction::exec, user);
  probes_.consider(probed_id);
  probes_.attach_for_next(probed_id, user);
  EXPECT_THAT(turn(start_ + 20 * milli), IsEmpty()) << "it is the same user's";
  world_.add(72, probed_id, start_ + 20 * milli, ProcessAction::exec, other_user);
  probes_.consider(probed_id);
  EXPECT_THAT(turn(start_ + 30 * milli), IsEmpty()) << "it may get a ring";
  const auto attached = turn(start_ + 40 * milli);
  ASSERT_EQ(attached.size(), 1u);
  EXPECT_TRUE(attached[0].after_gap);
  EXPECT_FALSE(probes_.is_in_gap(probed_id));

  world_.table.erase(72);
  begin_gap();
  probes_.attach_for_next(probed_id, other_user);
  EXPECT_EQ(turn(start_ + 50 * milli).size(), 1u) << "for the next one, after a process that was too short";
  EXPECT_FALSE(probes_.is_in_gap(probed_id));
}

/// Before Linux 6.6 detaching takes up to a second for each binary.
TEST_F(RinglessProbesTest, AreAttachedAgainAlsoIfDetachingTookLongerThanThePause) {
  attach();
  probes_.exceeded_limit(probed_id, user);
  world_.timed.run(start_);
  world_.timed.run(start_ + second);
  EXPECT_THAT(probes_.take_attached(), IsEmpty());
  world_.tasks.run_all();
  const auto attached = probes_.take_attached();
  ASSERT_EQ(attached.size(), 1u);
  EXPECT_TRUE(attached[0].after_gap);
  EXPECT_FALSE(probes_.is_in_gap(probed_id));
  EXPECT_THAT(world_.programs.probed, ElementsAre(probed_id, probed_id));
}

TEST_F(RinglessProbesTest, SayWhyABinaryCannotBeProbed) {
  Binary stripped = test::probed_binary(8), partial = test::probed_binary(9), unknown = test::probed_binary(10);
  stripped.runtime.version.clear();
  partial.runtime.emitters.clear();
  unknown.runtime.domain_self_tls = 0;
  unknown.runtime.caml_state_tls = 16;  // of no use without the offset of the id
  for (const Binary& each : {stripped, partial, unknown}) {
    probes_.prepare(STDIN_FILENO, each.runtime, {.id = each.id});
    probes_.attach_for_next(each.id, user);
    EXPECT_THAT(turn(start_), IsEmpty());
    EXPECT_TRUE(probes_.failure(each.id));
    EXPECT_FALSE(probes_.is_attached(each.id));
  }
  EXPECT_NE(probes_.failure(8), probes_.failure(9));
  EXPECT_NE(probes_.failure(9), probes_.failure(10));
  unknown.id = 11;
  unknown.runtime.id_offset = 24;
  probes_.prepare(STDIN_FILENO, unknown.runtime, {.id = unknown.id});
  probes_.attach_for_next(11, user);
  EXPECT_EQ(turn(start_).size(), 1u);
}

}  // namespace
}  // namespace rtev
