// SPDX-License-Identifier: MIT
// The open user spans of a domain, for their durations.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rtev {

/// An end belongs to the innermost open span of its name. Of more than `max` open spans the outermost is forgotten.
class OpenSpans {
 public:
  static constexpr std::size_t max = 16;

  void begin(std::uint16_t event, std::uint64_t time_ns) {
    if (count_ == max) remove(0);
    spans_[count_++] = {.event = event, .begin_ns = time_ns};
  }
  /// The duration of the span that ends; nothing if its begin was not seen, or the clock went back.
  std::optional<std::uint64_t> end(std::uint16_t event, std::uint64_t time_ns) {
    for (std::size_t i = count_; i-- > 0;) {
      if (spans_[i].event != event) continue;
      const std::uint64_t begin_ns = spans_[i].begin_ns;
      remove(i);
      if (time_ns < begin_ns) return std::nullopt;
      return time_ns - begin_ns;
    }
    return std::nullopt;
  }
  void clear() { count_ = 0; }

 private:
  struct Span {
    std::uint16_t event;
    std::uint64_t begin_ns;
  };
  void remove(std::size_t index) {
    std::copy(spans_.begin() + index + 1, spans_.begin() + count_, spans_.begin() + index);
    --count_;
  }

  std::array<Span, max> spans_{};  ///< innermost last
  std::size_t count_ = 0;
};

}  // namespace rtev
