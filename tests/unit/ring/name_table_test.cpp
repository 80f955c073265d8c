// SPDX-License-Identifier: MIT
#include "ring/name_table.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rtev::test {
namespace {

using ::testing::ElementsAre;

TEST(NameTable, FindsNamesById) {
  NameTable names;
  EXPECT_FALSE(names.contains(0));
  EXPECT_EQ(names.find(user_event_slots - 1), "");
  // The other way round than they are stored.
  for (std::uint16_t id = user_event_slots; id-- > 0;) names.put(id, "name " + std::to_string(id));
  for (std::uint16_t id = 0; id < user_event_slots; ++id) ASSERT_EQ(names.find(id), "name " + std::to_string(id));
}

TEST(NameTable, KeepsAViewUntilTheNameChanges) {
  NameTable names;
  names.put(7, "request");
  const std::string_view view = names.find(7);
  for (std::uint16_t id = 8; id < 1000; ++id) names.put(id, "other");
  EXPECT_EQ(view, "request");
  names.put(7, "reply");
  EXPECT_EQ(names.find(7), "reply");
}

TEST(NameTable, CutsLongNames) {
  NameTable names;
  names.put(0, std::string(user_event_name_bytes - 1, 'a'));
  names.put(1, std::string(2 * user_event_name_bytes, 'b'));
  EXPECT_EQ(names.find(0), std::string(user_event_name_bytes - 1, 'a'));
  EXPECT_EQ(names.find(1), std::string(user_event_name_bytes - 1, 'b'));
}

TEST(NameTable, SaysWhatTheNextNameTakes) {
  NameTable names;
  const std::size_t first = names.bytes_of_next(0), last = names.bytes_of_next(user_event_slots - 1);
  EXPECT_GE(first, user_event_name_bytes);
  EXPECT_EQ(last - first, (user_event_slots - 1) * sizeof(std::uint16_t));
  names.put(user_event_slots - 1, "last");
  EXPECT_EQ(names.bytes_of_next(user_event_slots - 1), 0u);
  std::size_t rest = 0;
  for (std::uint16_t id = 0; id < user_event_slots - 1; ++id) {
    rest += names.bytes_of_next(id);
    names.put(id, "name");
  }
  EXPECT_GE(rest, (user_event_slots - 8) * user_event_name_bytes);
}

TEST(NameTable, VisitsAndClears) {
  NameTable names;
  names.put(5, "b");
  names.put(2, "");
  names.put(9, "c");
  std::vector<std::uint16_t> ids;
  names.for_each([&](std::uint16_t id) { ids.push_back(id); });
  EXPECT_THAT(ids, ElementsAre(2, 5, 9));
  names.clear();
  EXPECT_FALSE(names.contains(5));
  names.put(9, "d");
  EXPECT_EQ(names.find(9), "d");
  EXPECT_EQ(names.find(5), "");
}

}  // namespace
}  // namespace rtev::test
