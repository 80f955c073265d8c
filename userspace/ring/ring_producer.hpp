// SPDX-License-Identifier: MIT
// The writing end of one ring: the flight-recorder rule, and the order of stores that readers rely on.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "rtev/layout.hpp"

namespace rtev {

/// One thread at a time. Head and tail are kept here and only stored to the file, never loaded from it: what another
/// process writes there does not lead the producer astray.
class RingProducer {
 public:
  RingProducer() = default;
  /// `indices`: head and tail in the file; `words`: the ring's data, a power of two of them.
  RingProducer(std::uint64_t* indices, std::span<std::uint64_t> words)
      : indices_(indices), data_(words.data()), capacity_(words.size()) {}

  /// Writes a message of two words and its payload; false if the ring can never hold it. A message is not split at the
  /// physical end: what is left there becomes padding, published on its own.
  bool append(std::uint64_t first_word, std::uint64_t time, std::span<const std::uint64_t> payload) {
    const std::uint64_t length = payload.size() + 2;
    if (length >= capacity_) return false;
    if (const std::uint64_t to_end = capacity_ - (tail_ & (capacity_ - 1)); to_end < length) {
      make_room(to_end);
      store(tail_, message::first_word(to_end, false, message::padding, 0));
      publish(to_end);
    }
    make_room(length);
    store(tail_, first_word);
    store(tail_ + 1, time);
    for (std::uint64_t i = 0; i < payload.size(); ++i) store(tail_ + 2 + i, payload[i]);
    publish(length);
    return true;
  }

  /// Words written, padding included. Any thread may ask.
  std::uint64_t tail() { return std::atomic_ref(tail_).load(std::memory_order_relaxed); }

 private:
  void make_room(std::uint64_t length) {
    if (tail_ + length - head_ < capacity_) return;
    do {
      const std::uint64_t oldest = data_[head_ & (capacity_ - 1)] >> message::length_shift;
      // Somebody else wrote into the ring: no message has no length or reaches beyond the tail. Begin with an empty
      // one.
      head_ = oldest == 0 || oldest > tail_ - head_ ? tail_ : head_ + oldest;
    } while (tail_ + length - head_ >= capacity_);
    std::atomic_ref(indices_[0]).store(head_, std::memory_order_release);
    // The words given up must not be seen overwritten before the new head is: a release store orders only what came
    // before it.
    std::atomic_thread_fence(std::memory_order_release);
  }
  void store(std::uint64_t position, std::uint64_t word) {
    std::atomic_ref(data_[position & (capacity_ - 1)]).store(word, std::memory_order_relaxed);
  }
  void publish(std::uint64_t length) {
    std::atomic_ref(tail_).store(tail_ + length, std::memory_order_relaxed);
    std::atomic_ref(indices_[1]).store(tail_, std::memory_order_release);
  }

  std::uint64_t* indices_ = nullptr;
  std::uint64_t* data_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t head_ = 0, tail_ = 0;
};

}  // namespace rtev
