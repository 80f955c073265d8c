// SPDX-License-Identifier: MIT
// A program whose mappings change between the look and the write. The program is a child; its runtime is a file with a
// page of code and a page of variables.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include "enable/attempt.hpp"
#include "enable/target.hpp"
#include "support/temp_dir.hpp"
#include "unit/enable/child.hpp"
#include "unit/enable/long_paths.hpp"

namespace rtev::enable {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr int code_access = PROT_READ | PROT_EXEC, data_access = PROT_READ | PROT_WRITE;

class MappedTargetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"runtime", "other"}) std::ofstream(dir_ / name) << std::string(2 * page_bytes, '\0');
    map("runtime", 0, code_access);
    map("runtime", 1, data_access);
  }
  void TearDown() override { ::munmap(pages_, 2 * page_bytes); }

  std::uint64_t address(int page) const { return reinterpret_cast<std::uint64_t>(pages_) + page * page_bytes; }
  /// Maps a page of a file over that of the runtime.
  void map(const char* file, int page, int access, int flags = MAP_PRIVATE) const {
    const UniqueFd fd(::open((dir_ / file).c_str(), O_RDWR | O_CLOEXEC));
    void* const wanted = static_cast<std::byte*>(pages_) + page * page_bytes;
    EXPECT_EQ(::mmap(wanted, page_bytes, access, flags | MAP_FIXED, fd.get(), page * static_cast<off_t>(page_bytes)),
              wanted);
  }
  /// What may still be written to the program after it did something.
  Checked<void> unchanged_after(const std::function<void()>& change) const {
    return done_after(change, [this](const Target& target) { return target.check_unchanged(procfs_); });
  }
  template <typename Work>
  auto done_after(const std::function<void()>& change, const Work& work) const
      -> decltype(work(std::declval<Target>())) {
    Child child([] {}, change);
    auto held = HeldProcess::hold(child.pid(), 0);
    if (!held) return std::unexpected(held.error());
    Target target{.process = std::move(*held)};
    const std::uint64_t data = address(1);
    target.runtime.probes = {{.function = RTEV_PROBE_C_START, .file_offset = 0}};
    target.runtime.start_sites = {
        .hook = data, .blocking_hook = data + 16, .start = {address(0), address(0) + 1}, .enabled_flag = data + 24};
    target.runtime.paused_flag = data + 32;
    procfs_.visit_mappings(child.pid(), [&](Mapping mapping) {
      if (mapping.begin == address(0)) target.code = std::move(mapping);
      return true;
    });
    child.go_on();
    return work(target);
  }
  void expect_refused_after(const std::function<void()>& change) const {
    const auto unchanged = unchanged_after(change);
    ASSERT_FALSE(unchanged);
    EXPECT_EQ(unchanged.error().result, EnableResult::unexpected_value);
  }

  /// The runtime's variable, in the memory that the program gets.
  std::uint64_t& enabled() const { return *reinterpret_cast<std::uint64_t*>(address(1) + 24); }  // NOLINT

  test::TempDir dir_;
  Procfs procfs_;
  void* pages_ = ::mmap(nullptr, 2 * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

TEST_F(MappedTargetTest, ThatStaysTheSameMayBeWritten) {
  const auto unchanged = unchanged_after([] {});
  EXPECT_TRUE(unchanged) << unchanged.error().why;
}

TEST_F(MappedTargetTest, WithVariablesOfAnotherFileIsRefused) {
  expect_refused_after([this] { map("other", 1, data_access); });
}

TEST_F(MappedTargetTest, WithVariablesThatOthersShareIsRefused) {
  expect_refused_after([this] { map("runtime", 1, data_access, MAP_SHARED); });
}

TEST_F(MappedTargetTest, WithVariablesThatMayNotBeWrittenIsRefused) {
  expect_refused_after([this] { map("runtime", 1, PROT_READ); });
}

TEST_F(MappedTargetTest, WithCodeOfAnotherFileIsRefused) {
  expect_refused_after([this] {
    map("other", 0, code_access);
    map("other", 1, data_access);
  });
}

TEST_F(MappedTargetTest, WithoutItsCodeIsRefused) {
  expect_refused_after([this] { ::munmap(pages_, page_bytes); });
}

TEST_F(MappedTargetTest, WithThousandsOfLongPathsTakesLittleMemory) {
  const auto file = make_long_path(dir_.path(), "file");
  constexpr int mappings = 1500;
  constexpr std::size_t max_kib = 4096;  // all lines have 11 MB
  EXPECT_LT(peak_kib_of([&] {
              const auto unchanged = unchanged_after([&] { map_often(file, mappings); });
              EXPECT_TRUE(unchanged) << unchanged.error().why;
            }),
            max_kib);
}

/// Events that are on are paused by a word in its memory.
TEST_F(MappedTargetTest, ThatHasChangedHasItsEventsNotPaused) {
  enabled() = 1;
  std::optional<std::uint64_t> paused;
  const auto pause = [&](const Target& target) {
    auto is_set = set_paused(target, true);
    paused = target.memory().word(target.flags().paused);
    return is_set;
  };
  EXPECT_TRUE(done_after([] {}, pause));
  EXPECT_EQ(paused, 1);
  EXPECT_FALSE(done_after([this] { ::munmap(pages_, page_bytes); }, pause));
  EXPECT_EQ(paused, 0);
  EXPECT_FALSE(done_after([] { ::execl("/bin/sleep", "sleep", "100", nullptr); }, pause));
}

/// Else the runtime would make a ring whose file is there.
TEST_F(MappedTargetTest, WhoseRingCannotBeRemovedKeepsItsEventsOn) {
  enabled() = 1;
  EXPECT_TRUE(done_after([] {},
                         [this](const Target& target) -> Checked<void> {
                           EXPECT_FALSE(forget_ring(procfs_, target));
                           EXPECT_EQ(target.memory().word(target.flags().enabled), 1);
                           return {};
                         }));
}

TEST_F(MappedTargetTest, ThatExecutesAnotherProgramIsGone) {
  const auto unchanged = unchanged_after([] { ::execl("/bin/sleep", "sleep", "100", nullptr); });
  ASSERT_FALSE(unchanged);
  EXPECT_EQ(unchanged.error().result, EnableResult::gone);
}

}  // namespace
}  // namespace rtev::enable
