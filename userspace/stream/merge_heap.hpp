// SPDX-License-Identifier: MIT
// Which of many ordered sources has the earliest event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stream/source_queue.hpp"

namespace rtev {

/// The events of one source that a release has not taken yet.
struct Head {
  std::uint64_t time;  ///< of the next event
  std::uint32_t source;
  Event* next;
  const Event* end;
  SourceQueue* queue;

  bool before(const Head& other) const { return time < other.time || (time == other.time && source < other.source); }
};

/// A heap with the earliest head on top. The top can change in place, which happens for each event where sources
/// alternate. The heap moves pointers: a head would be copied with wide loads right after a narrow store to one of its
/// fields, and such loads have to wait until the store has reached the cache.
class MergeHeap {
 public:
  /// `max_heads`: how many add() may be given.
  explicit MergeHeap(std::size_t max_heads) { heads_.reserve(max_heads); }

  /// After the last add() call make(), before anything else.
  void add(const Head& head) {
    heads_.push_back(head);
    heap_.push_back(&heads_.back());
  }
  void make() {
    for (std::size_t at = heap_.size() / 2; at-- > 0;) place(at, heap_[at]);
  }

  bool empty() const { return heap_.empty(); }
  Head& top() { return *heap_.front(); }
  /// The next after the top; null if there is none.
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
