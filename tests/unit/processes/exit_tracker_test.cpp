// SPDX-License-Identifier: MIT
#include "processes/exit_tracker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace rtev {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Id = ExitTracker::ProcessId;

constexpr std::uint64_t second = 1'000'000'000, now = 100 * second;
constexpr FileIdentity file{.device = 1, .inode = 2}, other_file{.device = 1, .inode = 3};

bool any(const Id& /*process*/) {
  return true;
}

TEST(ExitTracker, RemembersExitsUntilTheProcessIsGone) {
  ExitTracker exits;
  exits.note_exit({7, 70});
  EXPECT_TRUE(exits.has_exited({7, 70}));
  EXPECT_FALSE(exits.has_exited({7, 71})) << "the next owner of the pid";
  exits.forget_gone({7, 8});
  EXPECT_TRUE(exits.has_exited({7, 70}));
  exits.forget_gone({8});
  EXPECT_FALSE(exits.has_exited({7, 70}));
}

TEST(ExitTracker, SuspectIsConfirmedOnceItsRecordCannotArriveAnyMore) {
  ExitTracker exits;
  EXPECT_FALSE(exits.has_suspects());
  exits.suspect({7, 70}, now);
  EXPECT_THAT(exits.confirm(now, any), IsEmpty()) << "its record may be of this very moment";
  EXPECT_TRUE(exits.has_suspects());
  EXPECT_THAT(exits.confirm(now + 1, any), ElementsAre(Id{7, 70}));
  EXPECT_THAT(exits.confirm(now + 2, any), IsEmpty());
  EXPECT_FALSE(exits.has_suspects());
}

TEST(ExitTracker, SuspectThatEndedOtherwiseIsForgotten) {
  ExitTracker exits;
  exits.suspect({7, 70}, now);
  exits.suspect({8, 80}, now);
  EXPECT_THAT(exits.confirm(now + 1, [](const Id& process) { return process.pid == 8; }), ElementsAre(Id{8, 80}));
  EXPECT_THAT(exits.confirm(now + 9 * second, any), IsEmpty());
}

TEST(ExitTracker, SuspectOfTwoScansIsConfirmedOnce) {
  ExitTracker exits;
  exits.suspect({7, 70}, now);
  exits.suspect({7, 70}, now + 1);
  EXPECT_THAT(exits.confirm(now + 2, any), ElementsAre(Id{7, 70}));
}

TracedProcess inspected(const FileIdentity& exe, std::uint64_t since_ns) {
  TracedProcess process{.pid = 7, .start_ticks = 70, .since_ns = since_ns, .index = 1};
  process.program.inspecting = exe;
  return process;
}

TEST(ExitTracker, EndedImageWaitsForItsNames) {
  ExitTracker exits;
  exits.keep_unresolved(inspected(file, now));
  exits.keep_unresolved(inspected(other_file, now + 5));
  EXPECT_EQ(exits.unnamed_since(now + 10), now);
  const auto binary = std::make_shared<const Binary>(Binary{.id = 3, .runtime = {}});
  const auto resolved = exits.take_resolved(file, binary);
  ASSERT_EQ(resolved.size(), 1u);
  EXPECT_EQ(resolved[0].program.binary, binary);
  EXPECT_EQ(exits.unnamed_since(now + 10), now + 5);
  EXPECT_EQ(exits.unnamed_since(now + second), std::nullopt) << "not for ever";
  exits.expire_unresolved(now + second);
  EXPECT_THAT(exits.take_resolved(other_file, binary), IsEmpty());
}

TEST(ExitTracker, AbortsWithoutARingAreCounted) {
  ExitTracker exits;
  TracedProcess process{.pid = 7};
  process.program.binary = std::make_shared<const Binary>(Binary{.id = 3, .runtime = {}});
  exits.note_end(process, SIGSEGV);
  exits.note_end(process, exit_unseen);
  EXPECT_EQ(exits.aborted_without_ring(), 0u);
  exits.note_end(process, SIGABRT);
  EXPECT_EQ(exits.aborted_without_ring(), 1u);
  process.has_ring = true;
  exits.note_end(process, SIGABRT);
  EXPECT_EQ(exits.aborted_without_ring(), 1u);
}

TEST(ExitTracker, AbortOfAProgramThatIsBeingInspectedIsDecidedLater) {
  ExitTracker exits;
  exits.note_end(inspected(file, now), SIGABRT);
  exits.note_end(inspected(file, now), SIGABRT);
  exits.note_end(inspected(other_file, now), SIGABRT);
  EXPECT_EQ(exits.aborted_without_ring(), 0u);
  EXPECT_TRUE(exits.inspects_aborted());
  exits.take_resolved(file, std::make_shared<const Binary>(Binary{.id = 3, .runtime = {}}));
  EXPECT_EQ(exits.aborted_without_ring(), 2u);
  exits.take_resolved(other_file, nullptr);
  EXPECT_EQ(exits.aborted_without_ring(), 2u) << "not an OCaml program";
  EXPECT_FALSE(exits.inspects_aborted());
}

}  // namespace
}  // namespace rtev
