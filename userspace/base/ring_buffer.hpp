// SPDX-License-Identifier: MIT
// A queue in one piece of memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace rtev {

/// A queue of values that are cheap to copy. The newest one is next to the oldest one in memory, so a queue of constant
/// length is in few lines of the CPU's cache. One thread.
template <typename T>
class RingBuffer {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// 0 is the oldest. `index` must be less than size().
  const T& operator[](std::size_t index) const { return values_[place(index)]; }
  const T& front() const { return (*this)[0]; }

  void push_back(const T& value) {
    if (size_ == values_.size()) set_capacity(std::max<std::size_t>(min_capacity, 2 * size_));
    values_[place(size_++)] = value;
  }
  /// There must be one. Gives memory back when most of it is unused.
  void pop_front() {
    first_ = place(1);
    --size_;
    if (values_.size() > min_capacity && size_ < values_.size() / 4) set_capacity(values_.size() / 2);
  }

 private:
  static constexpr std::size_t min_capacity = 8;

  std::size_t place(std::size_t index) const {
    const std::size_t place = first_ + index;
    return place < values_.size() ? place : place - values_.size();
  }
  void set_capacity(std::size_t capacity) {
    std::vector<T> values(capacity);
    for (std::size_t i = 0; i < size_; ++i) values[i] = (*this)[i];
    values_ = std::move(values);
    first_ = 0;
  }

  std::vector<T> values_;  ///< its size is the capacity
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace rtev
