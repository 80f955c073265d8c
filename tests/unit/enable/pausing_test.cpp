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

#include <atomic>
#include <cerrno>
#include <vector>

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
  ~SilentPage() {
    fd_.reset();  // those who wait go on
    ::munmap(page_, bytes);
  }
  bool is_silent() const { return is_silent_; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(page_); }

 private:
  static constexpr std::size_t bytes = 4096;
  void* page_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  UniqueFd fd_;
  bool is_silent_ = false;
};

PausedAtEnd program_with(std::uint64_t enabled, std::uint64_t paused) {
  return {.pid = ::getpid(),
          .memory = ProcessMemory(UniqueFd(::open("/proc/self/mem", O_RDWR | O_CLOEXEC)), ::getpid()),
          .flags = {.enabled = enabled, .paused = paused}};
}

TEST(PausingTest, ProgramsThatDoNotAnswerKeepNoOthersFromBeingPaused) {
  const SilentPage silent;
  if (!silent.is_silent()) GTEST_SKIP() << "no userfaultfd here";
  alignas(8) std::atomic<std::uint64_t> enabled = 1, paused = 0;
  std::vector<PausedAtEnd> programs;
  for (int hanging = 0; hanging < 200; ++hanging) programs.push_back(program_with(silent.address(), silent.address()));
  const auto address_of = [](auto& word) { return reinterpret_cast<std::uint64_t>(&word); };
  programs.push_back(program_with(address_of(enabled), address_of(paused)));
  EXPECT_TRUE(pause_all(std::move(programs)).empty());
  EXPECT_EQ(paused, 1u);
}

TEST(PausingTest, ThoseThatAreNotOnYetAreReturned) {
  alignas(8) std::atomic<std::uint64_t> enabled = 0, paused = 0;
  std::vector<PausedAtEnd> programs;
  programs.push_back(program_with(reinterpret_cast<std::uint64_t>(&enabled), reinterpret_cast<std::uint64_t>(&paused)));
  EXPECT_EQ(pause_all(std::move(programs)).size(), 1u);
  EXPECT_EQ(paused, 0u);
}

TEST(PausingTest, ThoseWhoseFlagIsNeitherOnNorOffAreLeftAlone) {
  alignas(8) std::atomic<std::uint64_t> enabled = 2, paused = 0;
  std::vector<PausedAtEnd> programs;
  programs.push_back(program_with(reinterpret_cast<std::uint64_t>(&enabled), reinterpret_cast<std::uint64_t>(&paused)));
  EXPECT_TRUE(pause_all(std::move(programs)).empty());
  EXPECT_EQ(paused, 0u);
}

}  // namespace
}  // namespace rtev::enable
