// SPDX-License-Identifier: MIT
// Events of many programs are paused, of which some never answer. All programs are this process.
#include "enable/pausing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "support/poll_until.hpp"

namespace rtev::enable {
namespace {

/// A page whose readers wait until this is destroyed.
class SilentPage {
 public:
  SilentPage() : fd_(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC))) {
    uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
    if (!fd_ || ::ioctl(fd_.get(), UFFDIO_API, &api) != 0) return;
    uffdio_register range{
        .range = {.start = address(), .len = bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING, .ioctls = 0};
    is_silent_ = ::ioctl(fd_.get(), UFFDIO_REGISTER, &range) == 0;
  }
  SilentPage(const SilentPage&) = delete;
  SilentPage& operator=(const SilentPage&) = delete;
  /// Those who wait go on. The page stays: they may read it when the next one is made.
  void let_go() { fd_.reset(); }
  bool is_silent() const { return is_silent_; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(page_); }

 private:
  static constexpr std::size_t bytes = 4096;
  void* page_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  UniqueFd fd_;
  bool is_silent_ = false;
};

PausedAtEnd program_with(std::uint64_t enabled, std::uint64_t paused, std::uint32_t user = 0) {
  return {.pid = ::getpid(),
          .user = user,
          .memory = ProcessMemory(UniqueFd(::open("/proc/self/mem", O_RDWR | O_CLOEXEC)), ::getpid()),
          .flags = {.enabled = enabled, .paused = paused}};
}

/// The flags of a program.
struct Flags {
  alignas(8) std::atomic<std::uint64_t> enabled = 1;
  alignas(8) std::atomic<std::uint64_t> paused = 0;

  PausedAtEnd program(std::uint32_t user) {
    return program_with(reinterpret_cast<std::uint64_t>(&enabled), reinterpret_cast<std::uint64_t>(&paused), user);
  }
  static std::vector<PausedAtEnd> one_of_each(std::span<Flags> all, std::uint32_t first_user) {
    std::vector<PausedAtEnd> programs;
    for (Flags& flags : all) programs.push_back(flags.program(first_user++));
    return programs;
  }
  static auto number_paused(std::span<const Flags> all) {
    return std::ranges::count_if(all, [](const Flags& flags) { return flags.paused == 1; });
  }
};

/// In place of a thread.
bool run_here(std::packaged_task<void()> task) {
  task();
  return true;
}

constexpr std::uint32_t attacker = 2000, others = 1000;

void add_silent(std::vector<PausedAtEnd>& programs, const SilentPage& silent, std::uint32_t user) {
  for (int hanging = 0; hanging < 100; ++hanging)
    programs.push_back(program_with(silent.address(), silent.address(), user));
}

TEST(PausingTest, ProgramsThatDoNotAnswerKeepNoOthersFromBeingPaused) {
  const SilentPage silent;
  if (!silent.is_silent()) GTEST_SKIP() << "no userfaultfd here";
  std::array<Flags, 100> of_one;
  std::array<Flags, 10> of_each;
  std::vector<PausedAtEnd> programs;
  for (const std::uint32_t user : {attacker, attacker + 1, attacker + 2}) add_silent(programs, silent, user);
  for (Flags& flags : of_one) programs.push_back(flags.program(others));
  std::ranges::move(Flags::one_of_each(of_each, 0), std::back_inserter(programs));
  std::size_t threads = 0;
  Pauser pauser([&threads](std::packaged_task<void()> task) {
    ++threads;
    return run_detached(std::move(task));
  });
  // A host that is busy may take long to run a thread.
  EXPECT_TRUE(test::poll_until([&] {
    programs = pauser.pause(std::move(programs));
    return Flags::number_paused(of_one) == static_cast<std::ptrdiff_t>(of_one.size()) &&
           Flags::number_paused(of_each) == static_cast<std::ptrdiff_t>(of_each.size());
  }));
  const std::size_t hung = threads - of_one.size() - of_each.size();
  EXPECT_GT(hung, Pauser::max_threads / 2);
  EXPECT_LT(hung, Pauser::max_threads);
  EXPECT_EQ(programs.size(), 300 - hung);
  EXPECT_TRUE(pauser.is_waiting());
}

TEST(PausingTest, ThreadsThatHangCountTheNextTime) {
  const SilentPage silent;
  if (!silent.is_silent()) GTEST_SKIP() << "no userfaultfd here";
  std::size_t threads = 0;
  Pauser pauser([&threads](std::packaged_task<void()> task) {
    ++threads;
    return run_detached(std::move(task));
  });
  std::vector<PausedAtEnd> programs;
  add_silent(programs, silent, attacker);
  programs = pauser.pause(std::move(programs));
  EXPECT_EQ(threads, Pauser::max_threads / 2);
  programs = pauser.pause(std::move(programs));
  EXPECT_EQ(threads, Pauser::max_threads / 2);
  EXPECT_EQ(programs.size(), 100 - threads);
}

TEST(PausingTest, ThoseThatAnswerLateAreReturnedLater) {
  std::optional<SilentPage> silent(std::in_place);
  if (!silent->is_silent()) GTEST_SKIP() << "no userfaultfd here";
  Pauser pauser;
  std::vector<PausedAtEnd> programs;
  programs.push_back(program_with(silent->address(), silent->address()));
  EXPECT_TRUE(pauser.pause(std::move(programs)).empty());
  EXPECT_TRUE(pauser.is_waiting());
  silent->let_go();
  std::vector<PausedAtEnd> off;
  EXPECT_TRUE(test::poll_until([&] {
    std::ranges::move(pauser.pause({}), std::back_inserter(off));
    return !pauser.is_waiting();
  }));
  EXPECT_EQ(off.size(), 1u) << "its words are 0";
}

TEST(PausingTest, ThoseWithoutAThreadArePausedLater) {
  std::array<Flags, 5> programs;
  int refused = 0;
  Pauser pauser([&refused](std::packaged_task<void()> task) {
    if (++refused <= 10) return false;
    return run_detached(std::move(task));
  });
  EXPECT_TRUE(pauser.pause(Flags::one_of_each(programs, 0)).empty());
  EXPECT_EQ(Flags::number_paused(programs), 5);
}

TEST(PausingTest, ThoseThatGetNoThreadAreReturnedAndPausedInThisOne) {
  std::array<Flags, 5> programs;
  Pauser pauser([](const std::packaged_task<void()>&) { return false; });
  auto left = pauser.pause(Flags::one_of_each(programs, 0));
  EXPECT_EQ(left.size(), 5u);
  EXPECT_EQ(Flags::number_paused(programs), 0);
  pauser.pause_here(std::move(left));
  EXPECT_EQ(Flags::number_paused(programs), 5);
}

TEST(PausingTest, RootsComeFirstThenUsersInTurn) {
  std::array<Flags, 4> flags;
  std::vector<PausedAtEnd> programs;
  constexpr std::array users{others, others, others + 1, 0u};
  programs.reserve(users.size());
  for (std::size_t i = 0; i < users.size(); ++i) programs.push_back(flags[i].program(users[i]));
  std::vector<std::size_t> order;
  Pauser pauser([&](std::packaged_task<void()> task) {
    task();
    for (std::size_t i = 0; i < flags.size(); ++i)
      if (flags[i].paused == 1 && std::ranges::find(order, i) == order.end()) order.push_back(i);
    return true;
  });
  EXPECT_TRUE(pauser.pause(std::move(programs)).empty());
  EXPECT_EQ(order, (std::vector<std::size_t>{3, 0, 2, 1}));
}

TEST(PausingTest, ThoseThatAreNotOnYetAreReturned) {
  std::array<Flags, 1> off;
  off[0].enabled = 0;
  EXPECT_EQ(Pauser(run_here).pause(Flags::one_of_each(off, 0)).size(), 1u);
  EXPECT_EQ(off[0].paused, 0u);
}

TEST(PausingTest, ThoseWhoseFlagIsNeitherOnNorOffAreLeftAlone) {
  std::array<Flags, 1> other;
  other[0].enabled = 2;
  EXPECT_TRUE(Pauser(run_here).pause(Flags::one_of_each(other, 0)).empty());
  EXPECT_EQ(other[0].paused, 0u);
}

}  // namespace
}  // namespace rtev::enable
