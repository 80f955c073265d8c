// SPDX-License-Identifier: MIT
// Memory of a program that runs another one by now, which has something at the same addresses. Nothing of that is read
// or written.
#include "enable/process_memory.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "enable/guardian.hpp"
#include "enable/held_process.hpp"
#include "enable/hook.hpp"
#include "enable/pausing.hpp"
#include "support/temp_dir.hpp"
#include "unit/enable/lookalike.hpp"

namespace rtev::enable {
namespace {

class ProcessMemoryTest : public ::testing::Test {
 protected:
  /// Where neither this program nor a sanitizer has anything.
  static constexpr std::uint64_t base = 0x70000000, page = base + Lookalike::page;
  static constexpr std::uint64_t replacement = 0x2000;

  void SetUp() override {
    // The words of both programs are the same.
    const std::vector<std::pair<std::uint64_t, std::uint64_t>> words{{Lookalike::hook, replacement},
                                                                     {Lookalike::enabled, 1}};
    Lookalike{.base = base, .words = words}.write(dir_ / "next");
    child_.emplace(
        [&] {
          void* const place = reinterpret_cast<void*>(page);  // NOLINT(performance-no-int-to-ptr)
          const void* const mapped = ::mmap(place, Lookalike::page_bytes, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
          if (mapped != place) ::_exit(1);
          for (const auto& [address, word] : words)
            *reinterpret_cast<std::uint64_t*>(base + address) = word;  // NOLINT(performance-no-int-to-ptr)
        },
        [this] { ::execl((dir_ / "next").c_str(), "next", nullptr); });
    held_.emplace(hold());
    ASSERT_EQ(held_->memory().word(base + Lookalike::hook), replacement);
  }
  HeldProcess hold() const {
    auto held = HeldProcess::hold(child_->pid(), 0);
    EXPECT_TRUE(held && held->may_write()) << "it has ended, or may not be written";
    return std::move(*held);
  }
  const ProcessMemory& memory() const { return held_->memory(); }
  /// A word of the program that runs now.
  std::uint64_t word_now(std::uint64_t address) const {
    const auto word = hold().memory().word(base + address);
    EXPECT_TRUE(word);
    return word.value_or(0);
  }
  static PausedAtEnd to_pause(const HeldProcess& process, std::uint64_t enabled) {
    return {.pid = process.pid(),
            .start_ticks = process.start_ticks(),
            .memory = ProcessMemory(UniqueFd(::dup(process.memory().fd().get())), process.pid()),
            .flags = {.enabled = base + enabled, .paused = base + Lookalike::paused}};
  }

  test::TempDir dir_;
  std::optional<Child> child_;
  std::optional<HeldProcess> held_;
};

TEST_F(ProcessMemoryTest, OfAProgramIsReadAndWritten) {
  EXPECT_TRUE(memory().is_alive());
  EXPECT_TRUE(memory().write_word(page + 8, 5));
  EXPECT_EQ(word_now(Lookalike::page + 8), 5u);
  EXPECT_FALSE(memory().write_word(page + 4, 5)) << "not aligned";
  EXPECT_FALSE(memory().write_word(8, 5));
  EXPECT_FALSE(memory().word(8));
}

TEST_F(ProcessMemoryTest, EndsWithItsMapping) {
  const std::uint64_t end = page + Lookalike::page_bytes;
  EXPECT_EQ(memory().bytes(end - 3, 100).size(), 3u);
  ASSERT_TRUE(memory().write_word(end - 8, 0x6161616161616161));
  EXPECT_FALSE(memory().text(end - 8, 100)) << "it has no end";
  ASSERT_TRUE(memory().write_word(end - 8, 0x0061616161616161));
  EXPECT_EQ(memory().text(end - 8, 100), "aaaaaaa");
  EXPECT_FALSE(memory().text(end - 8, 7));
}

TEST_F(ProcessMemoryTest, OfTheNextProgramIsAnother) {
  child_->go_on();
  EXPECT_EQ(word_now(Lookalike::hook), replacement);
  EXPECT_FALSE(memory().is_alive());
  EXPECT_FALSE(memory().word(base + Lookalike::hook));
  EXPECT_TRUE(memory().bytes(page, 8).empty());
  EXPECT_FALSE(memory().text(page, 8));
  EXPECT_FALSE(memory().write_word(page, 1));
  EXPECT_EQ(word_now(Lookalike::hook), replacement);
}

TEST_F(ProcessMemoryTest, AHookOfTheNextProgramIsNotPutBack) {
  child_->go_on();
  EXPECT_FALSE(put_back(memory(), {.address = base + Lookalike::hook, .original = 1, .replacement = replacement}));
  EXPECT_FALSE(put_back(memory(), {.address = base + Lookalike::hook, .original = 1, .replacement = 2}));
  EXPECT_EQ(word_now(Lookalike::hook), replacement);
}

TEST_F(ProcessMemoryTest, EventsOfTheNextProgramAreNotPaused) {
  std::vector<PausedAtEnd> programs;
  constexpr std::uint64_t off = Lookalike::directory;
  for (const std::uint64_t flag : {Lookalike::enabled, off}) programs.push_back(to_pause(*held_, flag));
  child_->go_on();
  EXPECT_TRUE(Pauser().pause(std::move(programs)).empty()) << "its events are not those that were off";
  EXPECT_EQ(word_now(Lookalike::paused), 0u);
}

TEST_F(ProcessMemoryTest, TheGuardianLeavesTheNextProgramAlone) {
  auto guardian = Guardian::start();
  ASSERT_TRUE(guardian) << guardian.error().message();
  Target target{.process = hold()};
  target.runtime.start_sites.enabled_flag = base + Lookalike::enabled;
  target.runtime.paused_flag = base + Lookalike::paused;
  ASSERT_EQ(guardian->keep(target), true);
  constexpr std::uint64_t hold_ns = 60'000'000'000;
  ASSERT_TRUE(guardian->hold(memory(), {.address = base + Lookalike::hook, .original = 1, .replacement = replacement},
                             hold_ns));
  child_->go_on();
  EXPECT_TRUE(guardian->renew());
  EXPECT_EQ(word_now(Lookalike::hook), replacement);
  // It ends when it has done what it had to.
  const UniqueFd end(::dup(guardian->end_fd()));
  ::shutdown(end.get(), SHUT_WR);
  constexpr int timeout_ms = 30'000;  // on a busy host it waits for events that may come on late, for 10 s
  pollfd hung_up{.fd = end.get(), .events = 0, .revents = 0};
  ASSERT_EQ(::poll(&hung_up, 1, timeout_ms), 1);
  EXPECT_EQ(word_now(Lookalike::paused), 0u);
}

}  // namespace
}  // namespace rtev::enable
