// SPDX-License-Identifier: MIT
#include "ring/sigbus_guard.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"

namespace rtev {
namespace {

constexpr std::size_t page = 4096;

/// Two mapped pages of a file that has only one.
class HalfFile {
 public:
  HalfFile() : fd_(::memfd_create("half", MFD_CLOEXEC)) {
    EXPECT_EQ(::ftruncate(fd_.get(), page), 0);
    base_ = static_cast<char*>(::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0));
    for (std::size_t i = 0; i < page; ++i) base_[i] = static_cast<char>(i);
  }
  ~HalfFile() { ::munmap(base_, 2 * page); }
  HalfFile(const HalfFile&) = delete;
  HalfFile& operator=(const HalfFile&) = delete;

  const char* data() const { return base_; }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  char* base_;
};

TEST(SigbusGuard, CopiesExistingBytes) {
  install_sigbus_guard();
  const HalfFile file;
  std::array<char, page> copy{};
  EXPECT_TRUE(guarded_copy(copy.data(), file.data(), copy.size()));
  EXPECT_EQ(copy[200], static_cast<char>(200));
}

TEST(SigbusGuard, SurvivesTheEndOfTheFileRepeatedly) {
  install_sigbus_guard();
  const HalfFile file;
  std::array<char, 64> copy{};
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(guarded_copy(copy.data(), file.data() + page, copy.size()));
    EXPECT_FALSE(guarded_copy(copy.data(), file.data() + page - 1, copy.size())) << "begins inside the file";
    EXPECT_TRUE(guarded_copy(copy.data(), file.data() + page - copy.size(), copy.size()));
  }
}

TEST(SigbusGuard, FileTruncatedUnderTheMapping) {
  install_sigbus_guard();
  const HalfFile file;
  char byte = 0;
  EXPECT_TRUE(guarded_copy(&byte, file.data(), 1));
  ASSERT_EQ(::ftruncate(file.fd(), 0), 0);
  EXPECT_FALSE(guarded_copy(&byte, file.data(), 1));
  ASSERT_EQ(::ftruncate(file.fd(), page), 0);
  EXPECT_TRUE(guarded_copy(&byte, file.data(), 1));
  EXPECT_EQ(byte, 0);
}

TEST(SigbusGuard, AccessBeyondTheEndAbortsTheTask) {
  install_sigbus_guard();
  const HalfFile file;
  struct Walk {
    const volatile char* at;
    std::atomic<std::size_t> steps;
  } walk{file.data(), 0};
  EXPECT_FALSE(run_guarded(
      file.data(), 2 * page,
      [](void* context) {
        Walk& todo = *static_cast<Walk*>(context);
        while (true) {
          static_cast<void>(todo.at[todo.steps]);
          ++todo.steps;
        }
      },
      &walk));
  EXPECT_EQ(walk.steps, page);
}

TEST(SigbusGuard, ThreadsAreIndependent) {
  install_sigbus_guard();
  const HalfFile file;
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&file, bad = number % 2 == 0] {
      for (int i = 0; i < 2000; ++i) {
        char byte = 0;
        EXPECT_EQ(guarded_copy(&byte, file.data() + (bad ? page : 0), 1), !bad);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The handler is installed once for the process, so these tests run in new processes, which set the earlier handler
// first.
TEST(SigbusGuardDeathTest, OtherFaultsEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_DFL);
        install_sigbus_guard();
        const HalfFile file;
        char byte = 0;
        if (guarded_copy(&byte, file.data() + page, 1)) std::_Exit(1);
        static_cast<void>(*static_cast<const volatile char*>(file.data() + page));
        std::_Exit(2);
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST(SigbusGuardDeathTest, SentSignalsAreNotIgnored) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_DFL);
        install_sigbus_guard();
        ::kill(::getpid(), SIGBUS);
        std::_Exit(2);
      },
      testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_IGN);
        install_sigbus_guard();
        ::kill(::getpid(), SIGBUS);
        std::_Exit(3);
      },
      testing::ExitedWithCode(3), "");
}

TEST(SigbusGuardDeathTest, EarlierHandlerGetsOtherFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        struct sigaction earlier{};
        earlier.sa_flags = SA_SIGINFO;
        earlier.sa_sigaction = [](int, siginfo_t* info, void*) { std::_Exit(info->si_addr != nullptr ? 7 : 8); };
        ::sigaction(SIGBUS, &earlier, nullptr);
        install_sigbus_guard();
        const HalfFile file;
        char byte = 0;
        if (guarded_copy(&byte, file.data() + page, 1)) std::_Exit(1);
        static_cast<void>(*static_cast<const volatile char*>(file.data() + page));
        std::_Exit(2);
      },
      testing::ExitedWithCode(7), "");
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, [](int number) { std::_Exit(number == SIGBUS ? 9 : 1); });
        install_sigbus_guard();
        ::kill(::getpid(), SIGBUS);
        std::_Exit(2);
      },
      testing::ExitedWithCode(9), "");
}

}  // namespace
}  // namespace rtev
