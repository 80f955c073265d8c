// SPDX-License-Identifier: MIT
// Entries of the journal are claims: a hook is put back only in the very program that the entry is of.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <optional>

#include "enable/attempt.hpp"
#include "support/answered_call.hpp"
#include "support/temp_dir.hpp"
#include "unit/enable/lookalike.hpp"

namespace rtev::enable {
namespace {

using test::answer_call, test::hold_call;

class MendLeftHooksTest : public ::testing::Test {
 protected:
  static constexpr uid_t user = 12345;
  static constexpr std::uint64_t base = 0x70000000;

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "changes its user, which takes root";
    auto journal = Journal::open(dir_ / "hooks");
    ASSERT_TRUE(journal) << journal.error().message();
    journal_.emplace(std::move(*journal));
    // As a run leaves a program that is killed while the hook is replaced.
    const Lookalike program{
        .base = base, .words = {{Lookalike::hook, base + Lookalike::start}, {Lookalike::directory, directory_text}}};
    program.write(dir_ / "program");
    child_.emplace(dir_ / "program", [this] {
      ::chdir(dir_.path().c_str());
      ::setresgid(user, user, user);
      ::setresuid(user, user, user);
    });
    auto target = find();
    ASSERT_TRUE(target) << target.error().why;
    entry_ = {.owner = {.pid = INT32_MAX},
              .pid = child_->pid(),
              .start_ticks = target->process.start_ticks(),
              .program = target->process.program(),
              .user = user,
              .claim = {{.address = target->hook(),
                         .original = base + Lookalike::default_hook,
                         .replacement = target->start_function(),
                         .thread_hook = base + Lookalike::thread_hook,
                         .witness = base + Lookalike::blocking_hook}}};
  }
  Checked<Target> find() const {
    auto process = HeldProcess::hold(child_->pid(), 0);
    if (!process) return std::unexpected(process.error());
    return find_target(Procfs(), std::move(*process));
  }
  std::uint64_t word(std::uint64_t address) const {
    const auto held = HeldProcess::hold(child_->pid(), 0);
    const auto word = held ? held->memory().word(base + address) : std::nullopt;
    EXPECT_TRUE(word);
    return word.value_or(0);
  }
  Mended mend(const SilentProcesses& silent = {}, Mending mending = Mending::side_by_side, const JournalOwner& own = {},
              bool is_finishing = false) const {
    return mend_left_hooks(*journal_, own, silent, progress_, mending, is_finishing);
  }
  /// The same in a process that does something else first. How that ended.
  template <typename First>
  int mend_in_child(Mending mending, const First& first) const {
    const pid_t worker = ::fork();
    if (worker == 0) {
      first();
      // As a worker does it.
      const auto unanswered = mend({}, mending).unanswered;
      ::_exit(unanswered ? unanswered->pid == entry_.pid ? 2 : 3 : 0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(worker, &status, 0), worker);
    return status;
  }
  /// Whether the hook is put back because of this entry.
  bool is_mended(const JournalEntry& entry) const {
    EXPECT_TRUE(journal_->add(entry));
    mend();
    EXPECT_TRUE(journal_->left_to({}).empty());
    const bool is_put_back = word(Lookalike::hook) == base + Lookalike::default_hook;
    EXPECT_TRUE(is_put_back || word(Lookalike::hook) == base + Lookalike::start);
    EXPECT_EQ(word(Lookalike::directory), directory_text) << "its runtime may be about to make the ring";
    return is_put_back;
  }
  bool is_mended_with(const std::function<void(JournalEntry&)>& change) const {
    JournalEntry changed = entry_;
    change(changed);
    return is_mended(changed);
  }

  static constexpr std::uint64_t directory_text = 0x1234;
  test::TempDir dir_;
  Progress progress_ = Progress::create().value();
  std::optional<Journal> journal_;
  std::optional<LookalikeChild> child_;
  JournalEntry entry_{};
};

TEST_F(MendLeftHooksTest, PutsAHookBack) {
  EXPECT_TRUE(is_mended(entry_));
}

TEST_F(MendLeftHooksTest, LeavesALaterProcessWithThePid) {
  EXPECT_FALSE(is_mended_with([](JournalEntry& entry) { ++entry.start_ticks; }));
}

TEST_F(MendLeftHooksTest, LeavesAnotherProgramThatTheProcessRunsByNow) {
  EXPECT_FALSE(is_mended_with([](JournalEntry& entry) { ++entry.program.first; }));
  EXPECT_FALSE(is_mended_with([](JournalEntry& entry) { ++entry.program.second; }));
}

TEST_F(MendLeftHooksTest, LeavesTheProgramOfAnotherUser) {
  EXPECT_FALSE(is_mended_with([](JournalEntry& entry) { entry.user = 0; }));
}

TEST_F(MendLeftHooksTest, LeavesAHookThatIsNotTheProgramsOwn) {
  EXPECT_FALSE(is_mended_with([](JournalEntry& entry) { entry.claim.hook.original += 8; }));
  EXPECT_FALSE(is_mended_with([](JournalEntry& entry) { entry.claim.hook.address = base + Lookalike::paused; }));
  EXPECT_FALSE(is_mended_with([](JournalEntry& entry) { entry.claim.hook.request = base + Lookalike::paused; }));
}

TEST_F(MendLeftHooksTest, ReturnsWhatItsSupervisorsEarlierWorkersTried) {
  const JournalOwner own{.pid = ::getpid(), .start_ticks = 1};
  EXPECT_TRUE(journal_->add(entry_));
  EXPECT_TRUE(mend({}, Mending::side_by_side, own).tried.empty()) << "another run did";
  entry_.owner = own;
  EXPECT_TRUE(journal_->add(entry_));
  EXPECT_EQ(mend({}, Mending::side_by_side, own).tried, (Processes{{entry_.pid, entry_.start_ticks}}));
}

TEST_F(MendLeftHooksTest, LeavesProcessesThatDoNotAnswer) {
  SilentProcesses silent;
  silent.add({.pid = entry_.pid, .start_ticks = entry_.start_ticks, .user = user});
  ASSERT_TRUE(journal_->add(entry_));
  mend(silent);
  EXPECT_EQ(word(Lookalike::hook), base + Lookalike::start);
  EXPECT_EQ(journal_->left_to({}).size(), 1u) << "a later run tries it again";
}

TEST_F(MendLeftHooksTest, AtTheEndItLeavesAllOfAUserOfWhomOneDoesNotAnswer) {
  SilentProcesses silent;
  silent.add({.pid = INT32_MAX, .start_ticks = 1, .user = user});
  ASSERT_TRUE(journal_->add(entry_));
  mend(silent, Mending::side_by_side, {}, true);
  EXPECT_EQ(word(Lookalike::hook), base + Lookalike::start);
  EXPECT_EQ(journal_->left_to({}).size(), 1u);
  mend(silent);
  EXPECT_EQ(word(Lookalike::hook), base + Lookalike::default_hook);
}

TEST_F(MendLeftHooksTest, AtTheEndItWaitsForAMomentOnly) {
  constexpr int no_filter = 2;
  ASSERT_TRUE(journal_->add(entry_));
  const pid_t worker = ::fork();
  if (worker == 0) {
    if (!hold_call(SYS_pidfd_open)) ::_exit(no_filter);
    const std::uint64_t start_ns = monotonic_ns();
    mend({}, Mending::side_by_side, {}, true);
    ::_exit(monotonic_ns() - start_ns < 1'000'000'000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(worker, &status, 0), worker);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == no_filter) GTEST_SKIP() << "no SECCOMP_RET_USER_NOTIF here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(word(Lookalike::hook), base + Lookalike::start);
  EXPECT_EQ(journal_->left_to({}).size(), 1u);
}

TEST_F(MendLeftHooksTest, LeavesThoseOfAUserAtWhoseHooksAWorkerEnded) {
  SilentProcesses silent;
  silent.add_mend_end({.pid = entry_.pid + 1, .start_ticks = 1, .user = user});
  ASSERT_TRUE(journal_->add(entry_));
  for (const Mending mending : {Mending::side_by_side, Mending::one_by_one}) mend(silent, mending);
  EXPECT_EQ(word(Lookalike::hook), base + Lookalike::start);
  EXPECT_EQ(journal_->left_to({}).size(), 1u) << "a later run tries it again";
}

TEST_F(MendLeftHooksTest, MoreThanAreMendedAtATimeAreAllMended) {
  constexpr int more = 30;
  ASSERT_TRUE(journal_->add(entry_));
  for (int i = 1; i <= more; ++i) {
    JournalEntry gone = entry_;
    gone.start_ticks += i;
    gone.user = static_cast<std::uint32_t>(i);
    ASSERT_TRUE(journal_->add(gone));
  }
  mend();
  EXPECT_EQ(word(Lookalike::hook), base + Lookalike::default_hook);
  EXPECT_TRUE(journal_->left_to({}).empty());
}

TEST_F(MendLeftHooksTest, OfAUserTwoAreLookedAtAtATimeWhileOthersHaveTheirTurn) {
  // Everything that is looked at waits for ever.
  constexpr int others = 40;
  ASSERT_TRUE(journal_->add(entry_));
  for (int i = 1; i <= others; ++i) {
    JournalEntry waits = entry_;
    waits.start_ticks += i;
    waits.user = user + 1;
    ASSERT_TRUE(journal_->add(waits));
  }
  struct Looks {
    std::atomic<int> begun;
  };
  void* const memory = ::mmap(nullptr, sizeof(Looks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  static Looks* looks;
  looks = new (memory) Looks{};
  EXPECT_EQ(mend_in_child(Mending::side_by_side,
                          [] {
                            answer_call(SYS_pidfd_open, SECCOMP_RET_TRAP);
                            ::signal(SIGSYS, [](int) {
                              ++looks->begun;
                              while (true) ::pause();
                            });
                          }),
            0);
  EXPECT_EQ(looks->begun, 3);
  ::munmap(memory, sizeof(Looks));
}

TEST_F(MendLeftHooksTest, OneByOneNothingIsLookedAtAfterOneThatDoesNotAnswer) {
  ASSERT_TRUE(journal_->add(entry_));
  const int status = mend_in_child(Mending::one_by_one, [] {
    answer_call(SYS_pidfd_open, SECCOMP_RET_TRAP);
    ::signal(SIGSYS, [](int) {
      while (true) ::pause();
    });
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2) << "it is named";
  EXPECT_EQ(journal_->left_to({}).size(), 1u);
}

TEST_F(MendLeftHooksTest, NoneArePutBackIfStartsFailForNoKnownReason) {
  entry_.owner = {.pid = ::getpid(), .start_ticks = 1};
  ASSERT_TRUE(journal_->add(entry_));
  EXPECT_EQ(mend({}, Mending::none, entry_.owner).tried.size(), 1u) << "what was tried is known all the same";
  EXPECT_EQ(word(Lookalike::hook), base + Lookalike::start);
}

TEST_F(MendLeftHooksTest, OneByOneWhoEndsItIsKnown) {
  ASSERT_TRUE(journal_->add(entry_));
  const int status = mend_in_child(Mending::one_by_one, [] { answer_call(SYS_pidfd_open, SECCOMP_RET_KILL_PROCESS); });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(progress_.current().pid, entry_.pid);
  EXPECT_EQ(progress_.current().start_ticks, entry_.start_ticks);
  EXPECT_EQ(progress_.current().user, user);
  progress_.reset();
  EXPECT_FALSE(mend({}, Mending::one_by_one).unanswered);
  EXPECT_EQ(word(Lookalike::hook), base + Lookalike::default_hook);
  EXPECT_TRUE(journal_->left_to({}).empty());
}

TEST_F(MendLeftHooksTest, EveryUserWhoseHooksEndItCostsOneMoreStart) {
  constexpr std::uint32_t users = 5, hooks = 8;
  for (std::uint32_t i = 0; i < users * hooks; ++i) {
    JournalEntry entry = entry_;
    entry.start_ticks += i;
    entry.user = user + i % users;
    ASSERT_TRUE(journal_->add(entry));
  }
  SilentProcesses silent;
  Mending mending = Mending::side_by_side;
  std::uint32_t starts = 0;
  // As the supervisor does it.
  while (starts < 100) {
    ++starts;
    const pid_t worker = ::fork();
    if (worker == 0) {
      answer_call(SYS_pidfd_open, SECCOMP_RET_KILL_PROCESS);
      mend(silent, mending);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(worker, &status, 0), worker);
    journal_->unlock_all();
    if (WIFEXITED(status)) break;
    const Progress::Work work = progress_.current();
    if (work.pid != 0) silent.add_mend_end(work);
    progress_.reset();
    mending = next_mending(mending, WorkerEnd::not_started, work.pid != 0);
    ASSERT_EQ(mending, Mending::one_by_one);
  }
  EXPECT_EQ(starts, users + 2) << "the first one, for nobody is known then, and the last one, which works";
}

TEST(MendingTest, OnceAWorkerHasEndedHooksArePutBackOneByOne) {
  using enum Mending;
  using enum WorkerEnd;
  EXPECT_EQ(next_mending(side_by_side, late, true), side_by_side);
  EXPECT_EQ(next_mending(side_by_side, gone, true), one_by_one);
  EXPECT_EQ(next_mending(side_by_side, not_started, false), one_by_one);
  EXPECT_EQ(next_mending(one_by_one, late, true), one_by_one);
  EXPECT_EQ(next_mending(one_by_one, gone, false), one_by_one);
  EXPECT_EQ(next_mending(one_by_one, not_started, true), one_by_one);
  EXPECT_EQ(next_mending(one_by_one, not_started, false), none) << "nobody is to blame";
  EXPECT_EQ(next_mending(none, not_started, false), none);
  EXPECT_EQ(next_mending(none, gone, true), one_by_one) << "it had started";
}

TEST_F(MendLeftHooksTest, RemovesTheRingThatWasMadeForIt) {
  ASSERT_EQ(::chown(dir_.path().c_str(), user, user), 0);
  const auto found = find();
  ASSERT_TRUE(found);
  const auto ring = [&](std::uint64_t inode) {
    auto made = ReservedRing::make(Procfs(), found->process, {.path = dir_.path(), .may_be_readable = true}, {});
    EXPECT_TRUE(made) << made.error().why;
    made->keep();
    EXPECT_TRUE(is_mended_with([&](JournalEntry& entry) {
      entry.ring = {.inode = made->identity().inode + inode, .device = made->identity().device};
      entry.ring_path = made->path();
    }));
    return std::filesystem::exists(made->path());
  };
  EXPECT_FALSE(ring(0));
  EXPECT_TRUE(ring(1)) << "another file has its name";
}

}  // namespace
}  // namespace rtev::enable
