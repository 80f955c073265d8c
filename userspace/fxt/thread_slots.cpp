// SPDX-License-Identifier: MIT
#include "fxt/thread_slots.hpp"

namespace rtev::fxt {

std::uint8_t ThreadSlots::find(std::uint64_t pid, std::uint64_t tid) {
  const Key key{pid, tid};
  std::uint8_t& hinted = hint(key);
  if (hinted == 0 || slots_[hinted].key != key) {
    const auto found = by_thread_.find(key);
    if (found == by_thread_.end()) return 0;
    hinted = found->second;
  }
  const std::uint8_t slot = hinted;
  // Records of a thread come in rows.
  if (slot != slots_[0].next) {
    unlink(slot);
    link_as_last_used(slot);
  }
  return slot;
}

std::uint8_t ThreadSlots::replace(std::uint64_t pid, std::uint64_t tid) {
  std::uint8_t slot = 0;
  if (in_use_ < max_thread_slot - fixed_) {
    slot = static_cast<std::uint8_t>(fixed_ + ++in_use_);
  } else {
    slot = slots_[0].previous;
    if (slot == 0) return 0;
    by_thread_.erase(slots_[slot].key);
    unlink(slot);
  }
  slots_[slot].key = {pid, tid};
  by_thread_.emplace(slots_[slot].key, slot);
  link_as_last_used(slot);
  return slot;
}

void ThreadSlots::link_as_last_used(std::uint8_t slot) {
  const std::uint8_t second = slots_[0].next;
  slots_[slot].next = second;
  slots_[slot].previous = 0;
  slots_[second].previous = slot;
  slots_[0].next = slot;
}

void ThreadSlots::unlink(std::uint8_t slot) {
  slots_[slots_[slot].previous].next = slots_[slot].next;
  slots_[slots_[slot].next].previous = slots_[slot].previous;
}

}  // namespace rtev::fxt
