// SPDX-License-Identifier: MIT
#include "stream/window.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <string>

namespace rtev::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t second_ns = 1'000'000'000;

/// Local time is UTC.
class WindowTest : public testing::Test {
 protected:
  WindowTest() { set_zone("UTC0"); }
  ~WindowTest() override {
    if (before_.empty()) {
      ::unsetenv("TZ");
      ::tzset();
    } else {
      set_zone(before_.c_str());
    }
  }
  static void set_zone(const char* zone) {
    ::setenv("TZ", zone, 1);
    ::tzset();
  }
  /// A run that began when its clock was at 100 s, at this time of day.
  static RunHeader begun_at(std::uint64_t hour, std::uint64_t minute, std::uint64_t second) {
    constexpr std::uint64_t midnight_ns = 1'700'006'400 * second_ns;
    return {.start_ns = 100 * second_ns,
            .start_realtime_ns = midnight_ns + ((hour * 60 + minute) * 60 + second) * second_ns};
  }
  static std::uint64_t in(const char* text, const RunHeader& header) { return TimePoint::parse(text)->in(header); }

 private:
  std::string before_ = std::getenv("TZ") ? std::getenv("TZ") : "";
};

TEST_F(WindowTest, TimesAreCountedFromTheBeginning) {
  const RunHeader header = begun_at(14, 0, 0);
  EXPECT_EQ(in("0", header), 100 * second_ns);
  EXPECT_EQ(in("1.097718308", header), 101'097'718'308);
  EXPECT_EQ(in("200ms", header), 100'200'000'000);
}

TEST_F(WindowTest, TimesOfDayAreThoseOfTheRun) {
  const RunHeader header = begun_at(14, 0, 0);
  EXPECT_EQ(in("14:00:00", header), 100 * second_ns);
  EXPECT_EQ(in("14:03:22.125", header), 302'125'000'000);
  EXPECT_EQ(in("14:03", header), 280 * second_ns) << "its first second";
  EXPECT_EQ(in("00:00:01", begun_at(23, 59, 59)), 102 * second_ns) << "the next day";
  set_zone("XYZ-2");  // two hours before UTC
  EXPECT_EQ(in("16:00:05", header), 105 * second_ns);
}

TEST_F(WindowTest, WithoutATimeOfDayTheRunBegins) {
  EXPECT_EQ(in("14:03:22", {.start_ns = 7}), 7u);
}

TEST_F(WindowTest, OtherTextIsRefused) {
  for (const char* const text : {"", "x", "-1", "14:", ":03", "24:00", "14:60", "24:00:00", "14:60:00", "14:03:60",
                                 "14:03:", "14:03:1ms", "14:03:22:1", "1:2:-3", "1e3:00:00"})
    EXPECT_FALSE(TimePoint::parse(text)) << text;
}

TEST_F(WindowTest, Bounds) {
  const RunHeader header = begun_at(14, 0, 0);
  const auto expect = [&](const Window& window, std::uint64_t begin_ns, std::uint64_t end_ns) {
    EXPECT_EQ(window.in(header).begin_ns, begin_ns);
    EXPECT_EQ(window.in(header).end_ns, end_ns);
  };
  expect({}, 0, UINT64_MAX);
  expect({.from = TimePoint{1s}, .to = TimePoint{2s}}, 101 * second_ns, 102 * second_ns);
  expect({.around = TimePoint{1s}}, 100'900'000'000, 101'100'000'000);
  expect({.duration = 3s}, 0, 103 * second_ns);
  expect({.from = TimePoint{1s}, .to = TimePoint{2s}, .duration = 3s}, 101 * second_ns, 102 * second_ns);
  expect({.from = TimePoint{1s}, .duration = 3s}, 101 * second_ns, 104 * second_ns);
}

}  // namespace
}  // namespace rtev::test
