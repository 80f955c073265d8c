// SPDX-License-Identifier: MIT
// A text "/tmp" is taken from constants of the program only. The program is this process; its file is made up.
#include "enable/temporary_directory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "support/temp_dir.hpp"

namespace rtev::enable {
namespace {

class TemporaryDirectoryTest : public ::testing::Test {
 protected:
  static constexpr std::size_t page_bytes = 4096, reserved_bytes = 256u << 20, place = 100;
  /// With a zero before it and behind it.
  inline static const std::string text = std::string("\0/tmp\0", 6);

  ~TemporaryDirectoryTest() override { ::munmap(reserved_, reserved_bytes); }
  /// Whether the text is found in a file of these bytes that the program maps. The C library has it, too, and lies
  /// above: see `reserved_`.
  bool is_found_in(const std::string& content, int access = PROT_READ, bool is_program = true,
                   bool is_removed = false) {
    const auto file = dir_ / "program";
    std::ofstream(file, std::ios::binary) << content << std::string(page_bytes - content.size(), 'x');
    {
      const UniqueFd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC));
      EXPECT_EQ(::mmap(reserved_, page_bytes, access, MAP_PRIVATE | MAP_FIXED, fd.get(), 0), reserved_);
    }
    if (is_removed) std::filesystem::remove(file);
    auto process = HeldProcess::hold(::getpid(), 0);
    EXPECT_TRUE(process && process->may_write());
    Target target{.process = std::move(*process)};
    const auto address = reinterpret_cast<std::uint64_t>(reserved_);
    Procfs().visit_mappings(::getpid(), [&](Mapping mapping) {
      if (mapping.begin == address && is_program) target.code = std::move(mapping);
      return true;
    });
    const std::uint64_t found = find_temporary_directory(target);
    if (found == address + place + 1) return true;
    EXPECT_FALSE(address <= found && found < address + page_bytes);
    return false;
  }
  static std::string with(const std::string& words) { return std::string(place, 'x') + words; }

  test::TempDir dir_;
  void* reserved_ = ::mmap(nullptr, reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
};

TEST_F(TemporaryDirectoryTest, IsAConstantOfTheProgram) {
  EXPECT_TRUE(is_found_in(with(text)));
}

TEST_F(TemporaryDirectoryTest, IsAWholeText) {
  EXPECT_FALSE(is_found_in(with(std::string("\0/tmp/\0", 7))));
  EXPECT_FALSE(is_found_in(with(std::string("\0/var/tmp\0", 10))));
  EXPECT_FALSE(is_found_in(with(std::string("\0/tmp", 5))));
}

TEST_F(TemporaryDirectoryTest, IsNotWhatTheProgramMayChange) {
  EXPECT_FALSE(is_found_in(with(text), PROT_READ | PROT_WRITE));
  EXPECT_FALSE(is_found_in(with(text), PROT_READ | PROT_EXEC));
}

TEST_F(TemporaryDirectoryTest, IsNotOfAnyFile) {
  EXPECT_FALSE(is_found_in(with(text), PROT_READ, false));
}

TEST_F(TemporaryDirectoryTest, IsNotOfAFileThatWasReplaced) {
  EXPECT_FALSE(is_found_in(with(text), PROT_READ, true, true));
}

}  // namespace
}  // namespace rtev::enable
