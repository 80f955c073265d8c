// SPDX-License-Identifier: MIT
// Times as decimal microseconds.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rtev {

/// Writes times with three decimals: "86400000123.456". Most times are in the millisecond of the time before, and share
/// all but six digits with it.
class TimeText {
 public:
  /// Room that put() and put_anew() need.
  static constexpr std::size_t max_bytes = 32;

  /// Returns the end of what it wrote.
  char* put(char* at, std::uint64_t ns) {
    const std::uint64_t ms = ns / ns_per_ms;
    if (ms != ms_) [[unlikely]] {
      ms_ = ms;
      length_ = static_cast<std::size_t>(std::to_chars(digits_.data(), digits_.data() + digits_.size(), ms).ptr -
                                         digits_.data());
    }
    if (ms == 0) [[unlikely]]
      return put_anew(at, ns);  // without zeros at the begin
    std::memcpy(at, digits_.data(), digits_.size());
    at = put_three(at + length_, ns % ns_per_ms / 1000);
    *at++ = '.';
    return put_three(at, ns % 1000);
  }

  static char* put_anew(char* at, std::uint64_t ns) {
    at = std::to_chars(at, at + max_bytes, ns / 1000).ptr;
    *at++ = '.';
    return put_three(at, ns % 1000);
  }

 private:
  static constexpr std::uint64_t ns_per_ms = 1'000'000;

  /// Returns the end of the three digits. Needs room for four characters.
  static char* put_three(char* at, std::uint64_t number) {
    static constexpr auto texts = [] {
      std::array<std::array<char, 4>, 1000> all{};
      for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = {static_cast<char>('0' + i / 100), static_cast<char>('0' + i / 10 % 10),
                  static_cast<char>('0' + i % 10)};
      }
      return all;
    }();
    std::memcpy(at, texts[number].data(), 4);
    return at + 3;
  }

  std::uint64_t ms_ = 0;
  std::array<char, 16> digits_{};  ///< of ms_
  std::size_t length_ = 0;
};

}  // namespace rtev
