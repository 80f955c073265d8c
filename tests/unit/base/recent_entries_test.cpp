// SPDX-License-Identifier: MIT
#include "base/recent_entries.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <unordered_map>

namespace rtev {
namespace {

TEST(RecentEntries, FindWhatTheMapHas) {
  constexpr std::int32_t keys = 5000;  // more than there are places
  std::unordered_map<std::int32_t, std::int32_t> map;
  RecentEntries<std::int32_t> recent;
  for (std::int32_t key = 0; key < keys; key += 2) map.emplace(key, 10 * key);
  for (int round = 0; round < 2; ++round) {
    for (std::int32_t key = 0; key < keys; ++key) {
      const std::int32_t* const found = recent.find(map, key);
      ASSERT_EQ(found != nullptr, key % 2 == 0) << key;
      ASSERT_EQ(found != nullptr ? *found : 10 * key, 10 * key);
    }
  }
}

TEST(RecentEntries, ForgetWhatIsRemoved) {
  std::map<std::uint64_t, int> map{{std::uint64_t{1} << 40, 1}, {7, 2}};
  RecentEntries<int> recent;
  EXPECT_EQ(*recent.find(map, std::uint64_t{1} << 40), 1);
  EXPECT_EQ(*recent.find(map, 7), 2);
  recent.forget(7);
  map.erase(7);
  EXPECT_EQ(recent.find(map, 7), nullptr);
  recent.clear();
  map.clear();
  EXPECT_EQ(recent.find(map, std::uint64_t{1} << 40), nullptr);
}

}  // namespace
}  // namespace rtev
