// SPDX-License-Identifier: MIT
// Replaced hooks are put back: by hand, by the guardian, and from the journal. The program is this process.
#include "enable/hook.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "enable/guardian.hpp"
#include "enable/journal.hpp"
#include "inspect/procfs.hpp"
#include "support/temp_dir.hpp"
#include "unit/enable/child.hpp"

namespace rtev::enable {
namespace {

constexpr std::uint64_t original = 0x1000, replacement = 0x2000, thread_hook = 0x3000, other_hook = 0x4000;

/// How long a hook is held at the most.
constexpr std::uint64_t window_ns = 50'000'000;

class Hook : public ::testing::Test {
 protected:
  ReplacedHook replaced() {
    hook_ = replacement;
    return {.address = reinterpret_cast<std::uint64_t>(&hook_),
            .original = original,
            .replacement = replacement,
            .thread_hook = thread_hook,
            .witness = reinterpret_cast<std::uint64_t>(&witness_),
            .witness_before = witness_,
            .request = reinterpret_cast<std::uint64_t>(&request_)};
  }
  static ProcessMemory memory() {
    UniqueFd fd(::open("/proc/self/mem", O_RDWR | O_CLOEXEC));
    EXPECT_TRUE(fd);
    return ProcessMemory(std::move(fd), ::getpid());
  }
  bool is_put_back_soon() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (hook_ != original && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return hook_ == original;
  }

  alignas(8) std::atomic<std::uint64_t> hook_ = original, witness_ = 7, request_ = 1;
  test::TempDir dir_;
};

TEST_F(Hook, IsPutBack) {
  EXPECT_TRUE(put_back(memory(), replaced()));
  EXPECT_EQ(hook_, original);
  EXPECT_EQ(request_, 0u) << "OCaml's default hook does not clear it";
}

TEST_F(Hook, OfTheThreadsLibraryClearsTheRequestItself) {
  ReplacedHook hook = replaced();
  hook.original = thread_hook;
  EXPECT_TRUE(put_back(memory(), hook));
  EXPECT_EQ(hook_, thread_hook);
  EXPECT_EQ(request_, 1u);
}

TEST_F(Hook, ThatIsPutBackAlreadyIsLeftAlone) {
  const ReplacedHook hook = replaced();
  hook_ = original;
  EXPECT_TRUE(put_back(memory(), hook));
  EXPECT_EQ(request_, 1u) << "it may be anybody's by now";
  withdraw_request(memory(), hook);
  EXPECT_EQ(request_, 0u);
}

TEST_F(Hook, ThatTheProgramHasSetIsKept) {
  const ReplacedHook hook = replaced();
  hook_ = other_hook;
  EXPECT_TRUE(put_back(memory(), hook));
  EXPECT_EQ(hook_, other_hook);
}

TEST_F(Hook, BelongsToTheThreadsLibraryOnceThatIsInitialised) {
  const ReplacedHook hook = replaced();
  witness_ = 8;
  EXPECT_TRUE(put_back(memory(), hook));
  EXPECT_EQ(hook_, thread_hook);
}

TEST_F(Hook, OfAProgramThatIsGoneIsNotPutBack) {
  ReplacedHook hook = replaced();
  hook.address = 8;
  EXPECT_FALSE(put_back(memory(), hook));
}

TEST_F(Hook, IsPutBackByTheGuardianWhenThisProcessEnds) {
  {
    auto guardian = Guardian::start();
    ASSERT_TRUE(guardian) << guardian.error().message();
    ASSERT_TRUE(guardian->hold(memory(), replaced(), window_ns));
  }
  EXPECT_TRUE(is_put_back_soon());
}

TEST_F(Hook, IsPutBackByTheGuardianWhenThisProcessTakesTooLong) {
  auto guardian = Guardian::start();
  ASSERT_TRUE(guardian) << guardian.error().message();
  ASSERT_TRUE(guardian->hold(memory(), replaced(), window_ns));
  EXPECT_TRUE(is_put_back_soon());
  EXPECT_FALSE(guardian->let_go());
}

TEST_F(Hook, IsPutBackAgainIfThisProcessWritesItLateAndEnds) {
  {
    auto guardian = Guardian::start();
    ASSERT_TRUE(guardian) << guardian.error().message();
    ASSERT_TRUE(guardian->hold(memory(), replaced(), window_ns));
    EXPECT_TRUE(is_put_back_soon());
    hook_ = replacement;
  }
  EXPECT_TRUE(is_put_back_soon());
}

TEST_F(Hook, IsLeftToThisProcessThatReleasesIt) {
  {
    auto guardian = Guardian::start();
    ASSERT_TRUE(guardian) << guardian.error().message();
    ASSERT_TRUE(guardian->hold(memory(), replaced(), window_ns));
    EXPECT_TRUE(guardian->let_go());
  }
  EXPECT_EQ(hook_, replacement);
}

TEST_F(Hook, IsFoundInTheJournal) {
  const auto journal = Journal::open(dir_ / "hooks");
  ASSERT_TRUE(journal) << journal.error().message();
  const JournalEntry entry{.owner = {.pid = INT32_MAX, .start_ticks = 3},
                           .pid = 4711,
                           .start_ticks = 12345,
                           .program = {7, 8},
                           .user = 1000,
                           .claim = {replaced()},
                           .ring = {.inode = 9, .device = 10},
                           .ring_path = "/tmp/a b\n4711.events"};
  ASSERT_TRUE(journal->add(entry));
  const auto left = journal->left_to({});
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].entry, entry);
  journal->remove(entry);
  EXPECT_TRUE(journal->left_to({}).empty());
}

TEST_F(Hook, OfALivingRunIsLeftToThatRun) {
  const auto journal = Journal::open(dir_ / "hooks");
  ASSERT_TRUE(journal) << journal.error().message();
  const auto own = Procfs().stat(::getpid());
  ASSERT_TRUE(own);
  const JournalOwner living{.pid = ::getpid(), .start_ticks = own->start_ticks},
      ended{.pid = ::getpid(), .start_ticks = own->start_ticks - 1};
  ASSERT_TRUE(journal->add({.owner = living, .pid = 1}));
  ASSERT_TRUE(journal->add({.owner = ended, .pid = 2}));
  {
    const auto left = journal->left_to({});
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(left[0].entry.pid, 2);
  }
  EXPECT_EQ(journal->left_to(living).size(), 2u) << "an earlier worker of the run may have left them";
}

TEST_F(Hook, OfARunThatWasKilledIsLeftToOthersBeforeSomebodyWaitsForIt) {
  const auto journal = Journal::open(dir_ / "hooks");
  ASSERT_TRUE(journal) << journal.error().message();
  const pid_t run = ::fork();
  if (run == 0) ::_exit(0);
  ASSERT_GT(run, 0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(run), &ended, WEXITED | WNOWAIT), 0);
  const auto stat = Procfs().stat(run);
  ASSERT_TRUE(stat);
  ASSERT_TRUE(journal->add({.owner = {.pid = run, .start_ticks = stat->start_ticks}, .pid = 1}));
  EXPECT_EQ(journal->left_to({}).size(), 1u);
  ::waitpid(run, nullptr, 0);
}

TEST_F(Hook, OfAProcessThatAnotherRunWorksOnIsLeftToThatRun) {
  const auto journal = Journal::open(dir_ / "hooks"), others = Journal::open(dir_ / "hooks");
  ASSERT_TRUE(journal && others);
  auto locked = others->lock(1, 10);
  ASSERT_TRUE(locked);
  EXPECT_FALSE(journal->lock(1, 10));
  EXPECT_TRUE(journal->lock(1, 11)) << "a later process with the pid";
  EXPECT_TRUE(journal->lock(2, 10)) << "a process that hangs with its lock keeps no others waiting";
  const auto unfinished = dir_ / "hooks" / "1-10";
  std::ofstream{unfinished};
  EXPECT_TRUE(journal->left_to({}).empty());
  EXPECT_TRUE(std::filesystem::exists(unfinished)) << "it is being written";
  ASSERT_TRUE(others->add({.owner = {.pid = INT32_MAX}, .pid = 1, .start_ticks = 10}));
  EXPECT_TRUE(journal->left_to({}).empty());
  locked.reset();
  const auto left = journal->left_to({});
  EXPECT_EQ(left.size(), 1u);
  EXPECT_FALSE(others->lock(1, 10)) << "what is left is locked for who puts it back";
}

TEST_F(Hook, LocksOfAKilledWorkerAreLetGo) {
  const auto journal = Journal::open(dir_ / "hooks"), others = Journal::open(dir_ / "hooks");
  ASSERT_TRUE(journal && others);
  // A process that has a copy of the file as long as it hangs.
  const Child worker([&] { new auto(journal->lock(1, 10)); });
  EXPECT_FALSE(others->lock(1, 10));
  journal->unlock_all();
  EXPECT_TRUE(others->lock(1, 10));
}

TEST_F(Hook, ThatWasNotReplacedYetLeavesNoEntry) {
  const auto journal = Journal::open(dir_ / "hooks");
  ASSERT_TRUE(journal) << journal.error().message();
  const auto entry = dir_ / "hooks" / "4711-12345";
  std::ofstream{entry};
  EXPECT_TRUE(journal->left_to({}).empty());
  EXPECT_FALSE(std::filesystem::exists(entry));
}

TEST_F(Hook, OfABrokenEntryIsForgotten) {
  const auto journal = Journal::open(dir_ / "hooks");
  ASSERT_TRUE(journal) << journal.error().message();
  const JournalEntry entry{.owner = {.pid = INT32_MAX}, .pid = 4711, .start_ticks = 10};
  const auto file = dir_ / "hooks" / "4711-10";
  const auto change = [&](const std::function<std::string(std::string)>& changed) {
    EXPECT_TRUE(journal->add(entry));
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    std::ofstream(file, std::ios::trunc) << changed(text.str());
  };
  change([](std::string text) { return text; });
  EXPECT_EQ(journal->left_to({}).size(), 1u);
  for (const auto& broken : std::initializer_list<std::function<std::string(std::string)>>{
           [](const std::string& text) { return text.substr(0, text.size() / 2); },
           [](const std::string& text) { return "x" + text; },
           [](const std::string& text) { return "1" + std::string(30, '0') + text; }}) {
    change(broken);
    EXPECT_TRUE(journal->left_to({}).empty());
    EXPECT_FALSE(std::filesystem::exists(file));
  }
}

TEST_F(Hook, OfAnEntryUnderTheNameOfAnotherProcessIsForgotten) {
  const auto journal = Journal::open(dir_ / "hooks");
  ASSERT_TRUE(journal) << journal.error().message();
  const std::filesystem::path directory = dir_ / "hooks";
  for (const char* name : {"4712-10", "4711-11", "4711", "x", "4711-10-1"}) {
    ASSERT_TRUE(journal->add({.owner = {.pid = INT32_MAX}, .pid = 4711, .start_ticks = 10}));
    std::filesystem::rename(directory / "4711-10", directory / name);
    EXPECT_TRUE(journal->left_to({}).empty()) << name;
    EXPECT_FALSE(std::filesystem::exists(directory / name)) << name;
  }
}

TEST_F(Hook, OfAnEntryIsNotWrittenThroughALink) {
  const auto journal = Journal::open(dir_ / "hooks");
  ASSERT_TRUE(journal) << journal.error().message();
  std::ofstream(dir_ / "victim") << "x";
  std::filesystem::create_symlink(dir_ / "victim", dir_ / "hooks" / "4711-10");
  EXPECT_FALSE(journal->add({.pid = 4711, .start_ticks = 10}));
  EXPECT_EQ(std::filesystem::file_size(dir_ / "victim"), 1u);
}

TEST_F(Hook, OnlyRootMayLockTheJournal) {
  const auto journal = Journal::open(dir_ / "hooks");
  ASSERT_TRUE(journal) << journal.error().message();
  for (const auto& path : {dir_ / "hooks", dir_ / "hooks" / "lock"})
    EXPECT_EQ(std::filesystem::status(path).permissions() & std::filesystem::perms(077), std::filesystem::perms::none);
}

TEST_F(Hook, OfADirectoryOfOthersIsRefused) {
  std::filesystem::create_directory(dir_ / "hooks");
  std::filesystem::permissions(dir_ / "hooks", std::filesystem::perms::all);
  const auto journal = Journal::open(dir_ / "hooks");
  ASSERT_FALSE(journal);
  EXPECT_THAT(journal.error().why, ::testing::HasSubstr("others than root"));
}

}  // namespace
}  // namespace rtev::enable
