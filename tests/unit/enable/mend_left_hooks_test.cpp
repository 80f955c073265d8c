// SPDX-License-Identifier: MIT
// Entries of the journal are claims: a hook is put back only in the very program that the entry is of.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "enable/attempt.hpp"
#include "support/temp_dir.hpp"
#include "unit/enable/answered_call.hpp"
#include "unit/enable/lookalike.hpp"

namespace rtev::enable {
namespace {

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
  /// Whether the hook is put back because of this entry.
  bool is_mended(const JournalEntry& entry) const {
    EXPECT_TRUE(journal_->add(entry));
    const auto silent = SilentProcesses();
    mend_left_hooks(*journal_, {}, silent);
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
  EXPECT_TRUE(mend_left_hooks(*journal_, own, {}).empty()) << "another run did";
  entry_.owner = own;
  EXPECT_TRUE(journal_->add(entry_));
  EXPECT_EQ(mend_left_hooks(*journal_, own, {}), (Processes{{entry_.pid, entry_.start_ticks}}));
}

TEST_F(MendLeftHooksTest, LeavesProcessesThatDoNotAnswer) {
  SilentProcesses silent;
  silent.add({.pid = entry_.pid, .start_ticks = entry_.start_ticks, .user = user});
  ASSERT_TRUE(journal_->add(entry_));
  mend_left_hooks(*journal_, {}, silent);
  EXPECT_EQ(word(Lookalike::hook), base + Lookalike::start);
  EXPECT_EQ(journal_->left_to({}).size(), 1u) << "a later run tries it again";
}

TEST_F(MendLeftHooksTest, AtTheEndItLeavesAllOfAUserOfWhomOneDoesNotAnswer) {
  SilentProcesses silent;
  silent.add({.pid = INT32_MAX, .start_ticks = 1, .user = user});
  ASSERT_TRUE(journal_->add(entry_));
  mend_left_hooks(*journal_, {}, silent, nullptr, true);
  EXPECT_EQ(word(Lookalike::hook), base + Lookalike::start);
  EXPECT_EQ(journal_->left_to({}).size(), 1u);
  mend_left_hooks(*journal_, {}, silent, nullptr, false);
  EXPECT_EQ(word(Lookalike::hook), base + Lookalike::default_hook);
}

TEST_F(MendLeftHooksTest, AtTheEndItWaitsForAMomentOnly) {
  constexpr int no_filter = 2;
  ASSERT_TRUE(journal_->add(entry_));
  const pid_t worker = ::fork();
  if (worker == 0) {
    if (!hold_call(SYS_pidfd_open)) ::_exit(no_filter);
    const std::uint64_t start_ns = monotonic_ns();
    mend_left_hooks(*journal_, {}, {}, nullptr, true);
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

TEST_F(MendLeftHooksTest, OneByOneWhoEndsItIsKnown) {
  auto progress = Progress::create();
  ASSERT_TRUE(progress);
  ASSERT_TRUE(journal_->add(entry_));
  const pid_t worker = ::fork();
  if (worker == 0) {
    answer_call(SYS_pidfd_open, SECCOMP_RET_KILL_PROCESS);
    mend_left_hooks(*journal_, {}, {}, &*progress);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(worker, &status, 0), worker);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(progress->current().pid, entry_.pid);
  EXPECT_EQ(progress->current().start_ticks, entry_.start_ticks);
  EXPECT_EQ(progress->current().user, user);
  progress->reset();
  mend_left_hooks(*journal_, {}, {}, &*progress);
  EXPECT_EQ(word(Lookalike::hook), base + Lookalike::default_hook);
  EXPECT_TRUE(journal_->left_to({}).empty());
}

TEST_F(MendLeftHooksTest, RemovesTheRingThatWasMadeForIt) {
  ASSERT_EQ(::chown(dir_.path().c_str(), user, user), 0);
  const auto found = find();
  ASSERT_TRUE(found);
  const auto ring = [&](std::uint64_t inode) {
    auto made = RingFile::make(Procfs(), found->process, {.path = dir_.path(), .may_be_readable = true}, {});
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
