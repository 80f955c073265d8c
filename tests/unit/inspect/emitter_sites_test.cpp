// SPDX-License-Identifier: MIT
#include "inspect/emitter_sites.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "unit/inspect/runtime_shapes.hpp"

namespace rtev {
namespace {

std::vector<std::byte> code(std::string_view hex) {
  std::vector<std::byte> bytes;
  std::string digits;
  for (const char c : hex) {
    if (c == ' ') continue;
    digits.push_back(c);
    if (digits.size() < 2) continue;
    bytes.push_back(static_cast<std::byte>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  return bytes;
}

constexpr std::uint64_t address = 0x3e6e0;

struct Shape {
  const char* label;
  const char* code;
  std::size_t branch;
  std::uint64_t flag;
};

class EmitterShapes : public testing::TestWithParam<Shape> {};

TEST_P(EmitterShapes, AreKnown) {
  const auto found = find_enabled_branch(code(GetParam().code), address);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->offset, GetParam().branch);
  EXPECT_EQ(found->flag, GetParam().flag);
}

INSTANTIATE_TEST_SUITE_P(
    All, EmitterShapes,
    testing::Values(Shape{"Begin", "48 8b 05 11 79 02 00  48 85 c0  75 04  c3", 10, address + 7 + 0x27911},
                    Shape{"BeginNegative", "48 8b 05 f0 ff ff ff  48 85 c0  74 04  c3", 10, address + 7 - 16},
                    Shape{"Lifecycle", "48 83 ec 18  48 89 74 24 08  48 8b 05 58 78 02 00  48 85 c0  75 0b", 19,
                          address + 16 + 0x27858},
                    Shape{"LongBranch", "48 8b 05 11 79 02 00  48 85 c0  0f 85 00 01 00 00", 10, address + 7 + 0x27911},
                    Shape{"Compare", "48 83 3d 10 00 00 00 00  75 06", 8, address + 8 + 0x10},
                    Shape{"StackGuard",
                          "f3 0f 1e fa  48 83 ec 18  64 48 8b 04 25 28 00 00 00  48 89 44 24 08  48 8b 05 6b fa 55 00  "
                          "48 85 c0  75 1e",
                          32, address + 29 + 0x55fa6b},
                    Shape{"EndBranch", "f3 0f 1e fa  48 8b 05 00 01 00 00  48 85 c0  75 04", 14, address + 11 + 0x100}),
    [](const auto& shape) { return std::string(shape.param.label); });

TEST(EmitterSites, WhatIsNotKnownIsNotGuessed) {
  for (const char* unknown : {
           "",
           "75 04",                                         // a branch on nothing
           "48 8b 05 11 79 02 00  48 85 c0",                // cut off
           "48 8b 05 11 79 02 00  48 85 c0  75",            // in the middle of the branch
           "48 8b 05 11 79 02 00  48 85 c9  75 04",         // another register is tested
           "48 8b 0d 11 79 02 00  48 85 c0  75 04",         // another register is loaded
           "48 8b 05 11 79 02 00  90  48 85 c0  75 04",     // something in between
           "48 83 3d 10 00 00 00 01  75 06",                // compared with 1
           "89 fa  48 8b 05 11 79 02 00  48 85 c0  75 04",  // an argument is moved first
           "31 ff  48 8b 05 11 79 02 00  48 85 c0  75 04",  // or overwritten
           "48 8b 05 11 79 02 00  48 85 c0  7f 04",         // another condition
           "48 83 3d 10 00 00 00 00  0f 84 00 00 00",       // cut off
       })
    EXPECT_FALSE(find_enabled_branch(code(unknown), address)) << unknown;
}

}  // namespace
}  // namespace rtev
