// SPDX-License-Identifier: MIT
#include "base/units.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace rtev {
namespace {

template <typename Add>
std::string text_of(Add&& add) {
  TextBuffer out;
  add(out);
  return std::string{out.text()};
}
std::string duration(std::uint64_t ns) {
  return text_of([&](TextBuffer& out) { add_duration(out, ns); });
}
std::string seconds(std::uint64_t time, std::uint64_t origin, std::size_t width = 0) {
  return text_of([&](TextBuffer& out) { add_seconds(out, time, origin, width); });
}
std::string size(std::uint64_t bytes) {
  return text_of([&](TextBuffer& out) { add_size(out, bytes); });
}
std::string grouped(std::uint64_t number) {
  return text_of([&](TextBuffer& out) { out.add_grouped(number); });
}

TEST(Duration, HasThreeSignificantDigits) {
  EXPECT_EQ(duration(0), "0ns");
  EXPECT_EQ(duration(999), "999ns");
  EXPECT_EQ(duration(1'000), "1.00µs");
  EXPECT_EQ(duration(1'234), "1.23µs");
  EXPECT_EQ(duration(12'345), "12.3µs");
  EXPECT_EQ(duration(123'456), "123µs");
  EXPECT_EQ(duration(1'500'000), "1.50ms");
  EXPECT_EQ(duration(12'000'000'000), "12.0s");
  EXPECT_EQ(duration(1'234'000'000'000), "1,234s");
}

TEST(Duration, RoundsIntoTheNextUnit) {
  EXPECT_EQ(duration(9'994), "9.99µs");
  EXPECT_EQ(duration(9'995), "10.0µs");
  EXPECT_EQ(duration(99'949), "99.9µs");
  EXPECT_EQ(duration(99'950), "100µs");
  EXPECT_EQ(duration(999'499), "999µs");
  EXPECT_EQ(duration(999'500), "1.00ms");
  EXPECT_EQ(duration(999'999'999), "1.00s");
  EXPECT_EQ(duration(UINT64_MAX), "18,446,744,074s");
}

TEST(Seconds, AreRelativeWithNineDecimals) {
  EXPECT_EQ(seconds(5, 5), "0.000000000");
  EXPECT_EQ(seconds(1'000'000'007, 0), "1.000000007");
  EXPECT_EQ(seconds(0, 1'500'000'000), "-1.500000000");
  EXPECT_EQ(seconds(1, 2), "-0.000000001");
  EXPECT_EQ(seconds(7, 0, 14), "   0.000000007");
  EXPECT_EQ(seconds(UINT64_MAX, 0, 3), "18446744073.709551615");
  EXPECT_EQ(seconds(0, UINT64_MAX), "-18446744073.709551615");
}

TEST(Size, HasThreeSignificantDigits) {
  EXPECT_EQ(size(0), "0 B");
  EXPECT_EQ(size(999), "999 B");
  EXPECT_EQ(size(1'024), "1.02 kB");
  EXPECT_EQ(size(34'500'000), "34.5 MB");
  EXPECT_EQ(size(2'000'000'000'000), "2000 GB");
}

TEST(Grouped, SetsCommasBetweenThousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1'000), "1,000");
  EXPECT_EQ(grouped(262'136), "262,136");
  EXPECT_EQ(grouped(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(TextBuffer, WritesIntegersOfAllWidths) {
  TextBuffer out;
  out.add(INT64_MIN, ' ', UINT64_MAX, ' ', -1, ' ', std::uint8_t{200}, ' ', std::int16_t{-7});
  EXPECT_EQ(out.text(), "-9223372036854775808 18446744073709551615 -1 200 -7");
  out.clear();
  out.add_right(-42, 6);
  out.add_right(123456, 3);
  out.add_hex(std::string_view{"\x00\xff\x1b", 3});
  EXPECT_EQ(out.text(),
            "   -42123456"
            "00ff1b");
}

TEST(TextBuffer, GrowsAndKeepsItsText) {
  TextBuffer out;
  std::string expected;
  for (int i = 0; i < 20'000; ++i) {
    out.add(i, ',');
    expected += std::to_string(i) + ',';
  }
  EXPECT_EQ(out.text(), expected);
  const std::string large(1'000'000, 'x');
  out.clear();
  out.add(large);
  EXPECT_EQ(out.text(), large);
}

}  // namespace
}  // namespace rtev
