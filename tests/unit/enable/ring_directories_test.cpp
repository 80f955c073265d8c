// SPDX-License-Identifier: MIT
#include "enable/ring_directories.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "unit/enable/child.hpp"

namespace rtev::enable {
namespace {

/// A runtime's variable and the memory behind its variables, in a child that has a copy of them.
class LeadTest : public ::testing::Test {
 protected:
  /// Whether the runtime of a child could be led to the directory; what it has then is in `spare_` and `variable_`.
  bool lead(const std::string& path) {
    Child child([] {});
    auto held = HeldProcess::hold(child.pid(), 0);
    EXPECT_TRUE(held);
    if (!held) return false;
    Target target{.process = std::move(*held)};
    target.runtime.start_sites.directory = reinterpret_cast<std::uint64_t>(&variable_);
    // Words are aligned; what is before the first one is not used.
    target.runtime.start_sites.spare = {.begin = room() - 7, .end = room() + spare_.size() - 16};
    const bool is_led = lead_to_directory(target, path);
    const std::string there = target.memory().bytes(room() - 8, spare_.size());
    std::memcpy(spare_.data(), there.data(), there.size());
    variable_ = target.memory().word(reinterpret_cast<std::uint64_t>(&variable_)).value_or(0);
    return is_led;
  }
  std::uint64_t room() const { return reinterpret_cast<std::uint64_t>(spare_.data()) + 8; }
  std::string_view text() const { return spare_.data() + 8; }

  alignas(8) std::array<char, 48> spare_{};  ///< 32 bytes may be used, from the second word on
  alignas(8) std::uint64_t variable_ = 0;
};

TEST_F(LeadTest, ByAPathInTheSpareMemory) {
  const std::string longest = "/" + std::string(30, 'a');
  EXPECT_TRUE(lead(longest));
  EXPECT_EQ(variable_, room());
  EXPECT_EQ(text(), longest);
  EXPECT_TRUE(lead(longest)) << "again";
  EXPECT_FALSE(lead("/b")) << "it is led already";
  EXPECT_EQ(text(), longest);
}

TEST_F(LeadTest, NotByAPathWithoutRoom) {
  EXPECT_FALSE(lead("/" + std::string(31, 'a')));
  EXPECT_EQ(text(), "");
  EXPECT_EQ(variable_, 0u);
}

TEST_F(LeadTest, NotWhereSomethingIs) {
  spare_[8 + 7] = 'x';
  EXPECT_FALSE(lead("/a"));
  EXPECT_EQ(variable_, 0u);
  EXPECT_EQ(spare_[8], '\0');
}

TEST_F(LeadTest, AfterAnAttemptThatWroteThePathOnly) {
  std::memcpy(spare_.data() + 8, "/a", 2);
  EXPECT_TRUE(lead("/a"));
  EXPECT_EQ(variable_, room());
}

TEST_F(LeadTest, NotFromADirectoryOfItsOwn) {
  static const char own[] = "/own";
  static const char none[] = "";
  variable_ = reinterpret_cast<std::uint64_t>(own);
  EXPECT_FALSE(lead("/a"));
  variable_ = reinterpret_cast<std::uint64_t>(none);
  EXPECT_TRUE(lead("/a")) << "an empty one is none";
}

}  // namespace
}  // namespace rtev::enable
