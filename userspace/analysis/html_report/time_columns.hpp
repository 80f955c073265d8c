// SPDX-License-Identifier: MIT
// A run of any length as a bounded number of columns of equal width.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rtev {

/// When there is no column left, each takes in the one behind it, by Column::operator+=, and is twice as wide.
template <typename Column>
class TimeColumns {
 public:
  static constexpr std::size_t max_columns = 480;

  void begin(std::uint64_t start_ns) { start_ns_ = start_ns; }

  /// The column of a time. Earlier times than the begin are in the first one.
  Column& at(std::uint64_t time_ns) {
    const std::uint64_t since_ns = std::max(time_ns, start_ns_) - start_ns_;
    while (since_ns / width_ns_ >= max_columns) widen();
    const auto index = static_cast<std::size_t>(since_ns / width_ns_);
    if (index >= columns_.size()) columns_.resize(index + 1);
    return columns_[index];
  }

  /// Where the column of a time ends, at least 1 ns later.
  std::uint64_t end_of(std::uint64_t time_ns) const {
    if (time_ns < start_ns_) return start_ns_;
    const std::uint64_t begin_ns = time_ns - (time_ns - start_ns_) % width_ns_;
    return begin_ns > UINT64_MAX - width_ns_ ? UINT64_MAX : begin_ns + width_ns_;
  }

  std::uint64_t start_ns() const { return start_ns_; }
  std::uint64_t width_ns() const { return width_ns_; }
  /// Up to the last one that at() was asked for.
  std::span<const Column> columns() const { return columns_; }

 private:
  void widen() {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i % 2 == 1) {
        columns_[i / 2] += columns_[i];
      } else {
        columns_[i / 2] = columns_[i];
      }
    }
    columns_.resize((columns_.size() + 1) / 2);
    width_ns_ *= 2;
  }

  std::uint64_t start_ns_ = 0;
  std::uint64_t width_ns_ = 1'000'000;
  std::vector<Column> columns_;
};

}  // namespace rtev
