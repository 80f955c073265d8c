// SPDX-License-Identifier: MIT
// Which slot of a provider's thread table holds which thread: fixed slots first, the others by time of last use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "rtev/fxt.hpp"

namespace rtev::fxt {

/// Chooses slots; its user writes the records that define them. Slot 0 says that there is none.
class ThreadSlots {
 public:
  explicit ThreadSlots(std::uint8_t fixed) : fixed_(fixed) {}

  bool is_fixed(std::uint8_t slot) const { return slot >= 1 && slot <= fixed_; }

  /// The slot that holds this thread, which is now the last used; 0 if none does.
  std::uint8_t find(std::uint64_t pid, std::uint64_t tid);
  /// Gives a thread that no slot holds a fresh one, or that of the thread not used for the longest. 0 if all are fixed.
  std::uint8_t replace(std::uint64_t pid, std::uint64_t tid);

 private:
  struct Key {
    std::uint64_t pid, tid;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      constexpr std::uint64_t spread = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
      return static_cast<std::size_t>((key.pid * spread ^ key.tid) * spread >> 20);
    }
  };
  /// A ring by time of use, through `slots_[0]`, whose next is the last used slot.
  struct Slot {
    Key key{};
    std::uint8_t next = 0, previous = 0;
  };

  /// Where a thread was found last time, among those that hash alike: to be checked.
  std::uint8_t& hint(const Key& key) { return hints_[Hash()(key) % hints_.size()]; }
  void link_as_last_used(std::uint8_t slot);
  void unlink(std::uint8_t slot);

  std::uint8_t fixed_;
  std::uint8_t in_use_ = 0;  ///< of the slots that are not fixed
  std::array<Slot, max_thread_slot + std::size_t{1}> slots_{};
  std::array<std::uint8_t, 512> hints_{};
  std::unordered_map<Key, std::uint8_t, Hash> by_thread_;
};

}  // namespace rtev::fxt
