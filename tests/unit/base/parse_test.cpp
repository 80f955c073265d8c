// SPDX-License-Identifier: MIT
#include "base/parse.hpp"

#include <gtest/gtest.h>

namespace rtev::cli {
namespace {

using namespace std::chrono_literals;

TEST(Duration, TakesEveryUnitAndDecimals) {
  const struct {
    std::string_view text;
    std::chrono::nanoseconds value;
  } cases[] = {
      {"5", 5s},      {"5s", 5s},     {"0.5", 500ms},   {"500ms", 500ms},    {"20us", 20us},
      {"7ns", 7ns},   {"20µs", 20us}, {"2m", 120s},     {"1.5h", 90min},     {"1ns", 1ns},
      {".5s", 500ms}, {"100h", 100h}, {"1h30m", 90min}, {"1m0.5s", 60500ms}, {"1h1m1s1ms1us1ns", 3661001001001ns}};
  for (const auto& [text, value] : cases) EXPECT_EQ(parse_duration(text), value) << text;
}

TEST(Duration, RefusesInvalidText) {
  for (const std::string_view text :
       {"",     "s",      "ms",   "-1s",   "0",    "0s",     "0.1ns", "5 s",    " 5s",  "5s ",
        "5S",   "5x",     "5ss",  "1e3s",  "+5s",  "0x10",   "nan",   "inf",    "infs", "1000000h",
        "5,5s", "1.2.3s", "1m30", "30s1m", "1s1s", "1h-30m", "1h30",  "1h 30m", "0h0m", "99999999999999999999999999"})
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

TEST(Duration, LongestFitsIntoNanoseconds) {
  const auto longest = parse_duration("876600h");  // 100 years
  ASSERT_TRUE(longest);
  EXPECT_GT(longest->count(), 0);
  EXPECT_EQ(parse_duration("876601h"), std::nullopt);
}

TEST(ParseLimitDuration, NeedsAUnit) {
  EXPECT_EQ(parse_limit_duration("5ms"), std::chrono::milliseconds(5));
  for (const char* const text : {"5", "", "ms", "5 "}) EXPECT_EQ(parse_limit_duration(text), std::nullopt) << text;
}

TEST(Size, TakesPowersOf1024) {
  const struct {
    std::string_view text;
    std::size_t value;
  } cases[] = {{"1", 1},          {"4096", 4096},      {"512K", 512 << 10},           {"16M", 16 << 20},
               {"16m", 16 << 20}, {"0.5M", 512 << 10}, {"64G", std::size_t{64} << 30}};
  for (const auto& [text, value] : cases) EXPECT_EQ(parse_size(text), value) << text;
}

TEST(Size, RefusesInvalidText) {
  for (const std::string_view text :
       {"", "M", "-1M", "0", "0.5", "65G", "1T", "16MB", "16 M", "lots", "nan", "inf", "99999999999999999999"})
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
}

TEST(Size, OfFilesCanBeLargerOrZero) {
  EXPECT_EQ(parse_file_size("0"), 0u);
  EXPECT_EQ(parse_file_size("1.5T"), 3ull << 39);
  EXPECT_EQ(parse_file_size("100g"), 100ull << 30);
  for (const std::string_view text : {"", "-1", "5%", "2000T", "1P"}) EXPECT_EQ(parse_file_size(text), std::nullopt);
}

TEST(Percentage, IsAShare) {
  EXPECT_DOUBLE_EQ(parse_percentage("5%").value_or(-1), 0.05);
  EXPECT_DOUBLE_EQ(parse_percentage("0%").value_or(-1), 0);
  for (const std::string_view text : {"", "5", "101%", "-1%", "%", "5 %"})
    EXPECT_EQ(parse_percentage(text), std::nullopt);
}

TEST(Count, TakesPowersOf1000) {
  const struct {
    std::string_view text;
    std::uint64_t value;
  } cases[] = {{"0", 0},
               {"1", 1},
               {"250k", 250'000},
               {"1.5M", 1'500'000},
               {"0.5k", 500},
               {"1G", 1'000'000'000},
               {"1000000G", 1'000'000'000'000'000}};
  for (const auto& [text, value] : cases) EXPECT_EQ(parse_count(text), value) << text;
}

TEST(Count, RefusesInvalidText) {
  for (const std::string_view text : {"", "k", "-1", "0.5", "1.0005k", "1K", "1m", "1 k", "1kk", "+1", "1e3", "nan",
                                      "inf", "max", "1000001G", "99999999999999999999999"})
    EXPECT_EQ(parse_count(text), std::nullopt) << text;
}

}  // namespace
}  // namespace rtev::cli
