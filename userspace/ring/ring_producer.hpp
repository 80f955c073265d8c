// SPDX-License-Identifier: MIT
// Writes one ring: overwrites the oldest messages, and stores in the order that readers rely on.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "ring/layout.hpp"

namespace rtev {

/// For one thread at a time. Never loads head and tail from the file, because other processes can write there.
class RingProducer {
 public:
  RingProducer() = default;
  /// `indices`: head and tail in the file; `words`: the ring's data, a power of two of them.
  RingProducer(std::uint64_t* indices, std::span<std::uint64_t> words)
      : indices_(indices), data_(words.data()), capacity_(words.size()) {}

  /// Writes a message of two words and its payload; false if the ring can never hold it. A message does not wrap around
  /// the physical end: the rest there becomes padding, which is published on its own.
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

  /// Words written, padding included. Thread-safe.
  std::uint64_t tail() { return std::atomic_ref(tail_).load(std::memory_order_relaxed); }

 private:
  void make_room(std::uint64_t length) {
    if (tail_ + length - head_ < capacity_) return;
    do {
      const std::uint64_t oldest = data_[head_ & (capacity_ - 1)] >> message::length_shift;
      // A length of 0, or one beyond the tail: another process wrote into the ring. Restart with an empty ring.
      head_ = oldest == 0 || oldest > tail_ - head_ ? tail_ : head_ + oldest;
    } while (tail_ + length - head_ >= capacity_);
    std::atomic_ref(indices_[0]).store(head_, std::memory_order_release);
    // Readers must see the new head before the overwritten words. The release store alone would not order it: it covers
    // only earlier stores.
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
