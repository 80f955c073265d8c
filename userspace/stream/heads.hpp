// SPDX-License-Identifier: MIT
// Which of many ordered sources has the earliest event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stream/source_queue.hpp"

namespace rtev {

/// What a release has still to take from one source.
struct Head {
  std::uint64_t time;  ///< of the next event
  std::uint32_t source;
  Event* next;
  const Event* end;
  SourceQueue* queue;

  bool before(const Head& other) const { return time < other.time || (time == other.time && source < other.source); }
};

/// A heap with the earliest on top, which can change in place: where sources take turns that happens for each event.
/// The heap moves pointers. Heads would be copied in wide pieces right after a narrow store to one of their fields, for
/// which the processor waits until the store has reached the cache.
class Heads {
 public:
  /// For so many at the most.
  explicit Heads(std::size_t most) { heads_.reserve(most); }

  /// To be followed by make(), before anything else.
  void add(const Head& head) {
    heads_.push_back(head);
    heap_.push_back(&heads_.back());
  }
  void make() {
    for (std::size_t at = heap_.size() / 2; at-- > 0;) place(at, heap_[at]);
  }

  bool empty() const { return heap_.empty(); }
  Head& top() { return *heap_.front(); }
  /// Whose turn comes after the top's; null if there is nobody else.
  const Head* second() const {
    if (heap_.size() < 2) return nullptr;
    return heap_.size() > 2 && heap_[2]->before(*heap_[1]) ? heap_[2] : heap_[1];
  }
  /// The time of the top has changed.
  void settle() { place(0, heap_.front()); }
  void drop_top() {
    Head* const last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) place(0, last);
  }
  const std::vector<Head*>& all() const { return heap_; }

 private:
  /// Puts a head at a position, or as far below as it belongs.
  void place(std::size_t at, Head* head) {
    const std::size_t size = heap_.size();
    for (std::size_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && heap_[child + 1]->before(*heap_[child])) ++child;
      if (!heap_[child]->before(*head)) break;
      heap_[at] = heap_[child];
      at = child;
    }
    heap_[at] = head;
  }

  std::vector<Head> heads_;
  std::vector<Head*> heap_;
};

}  // namespace rtev
