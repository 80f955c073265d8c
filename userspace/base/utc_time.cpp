// SPDX-License-Identifier: MIT
#include "base/utc_time.hpp"

#include <cstring>
#include <ctime>

namespace rtev {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;

constexpr auto two_digits = [] {
  std::array<char, 200> digits{};
  for (std::size_t i = 0; i < 100; ++i) {
    digits[2 * i] = static_cast<char>('0' + i / 10);
    digits[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return digits;
}();

char* put_two(char* at, std::uint32_t number) {
  std::memcpy(at, two_digits.data() + std::size_t{2} * number, 2);
  return at + 2;
}

}  // namespace

std::string_view UtcTime::put(std::array<char, length>& text, std::uint64_t monotonic_ns) {
  const std::uint64_t realtime_ns = monotonic_ns + offset_ns_;
  const std::uint64_t second = realtime_ns / second_ns;
  if (second != second_) change_second(second);
  std::memcpy(text.data(), prefix_.data(), prefix_.size());
  char* at = text.data() + prefix_.size();
  const auto rest = static_cast<std::uint32_t>(realtime_ns - second * second_ns);
  *at++ = static_cast<char>('0' + rest / 100'000'000);
  for (std::uint32_t unit = 1'000'000; unit > 0; unit /= 100) at = put_two(at, rest / unit % 100);
  *at++ = 'Z';
  return {text.data(), at};
}

void UtcTime::change_second(std::uint64_t second) {
  second_ = second;
  const auto time = static_cast<std::time_t>(second);
  std::tm fields{};
  gmtime_r(&time, &fields);  // cannot fail: 2^64 ns are 585 years
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S.", &fields);
  std::memcpy(prefix_.data(), text.data(), prefix_.size());
}

}  // namespace rtev
