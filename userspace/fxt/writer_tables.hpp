// SPDX-License-Identifier: MIT
// The tables of FxtWriter: they choose slots for strings and threads. FxtWriter writes the records that define the
// slots. Slot 0 means "none".
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "rtev/fxt.hpp"

namespace rtev::fxt {

/// The string table: fixed slots first, then temporary slots, which are reused in turn, then interned strings.
class StringSlots {
 public:
  StringSlots(std::uint16_t fixed, std::uint16_t temporary, std::size_t interned_bytes)
      : fixed_(fixed),
        first_interned_(static_cast<std::uint16_t>(fixed + temporary + 1)),
        next_temporary_(static_cast<std::uint16_t>(fixed + 1)),
        next_interned_(first_interned_),
        bytes_left_(interned_bytes) {}

  bool is_fixed(std::uint16_t slot) const { return slot >= 1 && slot <= fixed_; }
  bool is_interned(std::uint16_t slot) const { return slot >= first_interned_ && slot < next_interned_; }

  std::uint16_t take_temporary() {
    if (first_interned_ == fixed_ + 1) return 0;
    const std::uint16_t slot = next_temporary_++;
    if (next_temporary_ == first_interned_) next_temporary_ = static_cast<std::uint16_t>(fixed_ + 1);
    return slot;
  }

  /// The slot of an interned text.
  std::uint16_t find(std::string_view text) const {
    const auto found = interned_.find(text);
    return found == interned_.end() ? std::uint16_t{0} : found->second;
  }
  bool has_room_for(std::string_view text) const {
    return next_interned_ <= max_string_slot && text.size() <= bytes_left_;
  }
  /// The slot that intern() returns next.
  std::uint16_t next_interned() const { return next_interned_; }
  /// Interns a text that has_room_for().
  std::uint16_t intern(std::string_view text) {
    bytes_left_ -= text.size();
    interned_.emplace(text, next_interned_);
    return next_interned_++;
  }
  /// The text of an interned slot, otherwise empty. Slow: for messages.
  std::string_view text_of(std::uint16_t slot) const {
    const auto found = std::ranges::find(interned_, slot, [](const auto& entry) { return entry.second; });
    return found == interned_.end() ? std::string_view{} : found->first;
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::uint16_t fixed_, first_interned_;
  std::uint16_t next_temporary_, next_interned_;
  std::size_t bytes_left_;
  std::unordered_map<std::string, std::uint16_t, Hash, std::equal_to<>> interned_;
};

/// The thread table: fixed slots first. Of the others, the least recently used one is reused.
class ThreadSlots {
 public:
  explicit ThreadSlots(std::uint8_t fixed) : fixed_(fixed) {}

  bool is_fixed(std::uint8_t slot) const { return slot >= 1 && slot <= fixed_; }

  /// The slot of a thread, which becomes the most recently used one.
  std::uint8_t find(std::uint64_t pid, std::uint64_t tid) {
    const auto holds_it = [&](std::size_t slot) { return slots_[slot].pid == pid && slots_[slot].tid == tid; };
    std::uint8_t& hint = hints_[(pid * 31 + tid) % hints_.size()];
    if (hint == 0 || !holds_it(hint)) {
      std::size_t slot = used_;
      while (slot > 0 && !holds_it(fixed_ + slot)) --slot;
      if (slot == 0) return 0;
      hint = static_cast<std::uint8_t>(fixed_ + slot);
    }
    slots_[hint].last_use = ++uses_;
    return hint;
  }

  /// The slot to define for a thread that has none.
  std::uint8_t assign(std::uint64_t pid, std::uint64_t tid) {
    if (fixed_ == max_thread_slot) return 0;
    std::size_t slot = 0;
    if (used_ < std::size_t{max_thread_slot} - fixed_) {
      slot = fixed_ + ++used_;
    } else {
      const auto oldest = std::ranges::min_element(slots_.begin() + fixed_ + 1, slots_.end(), {}, &Slot::last_use);
      slot = static_cast<std::size_t>(oldest - slots_.begin());
    }
    slots_[slot] = {.pid = pid, .tid = tid, .last_use = ++uses_};
    return static_cast<std::uint8_t>(slot);
  }

 private:
  struct Slot {
    std::uint64_t pid = 0, tid = 0, last_use = 0;
  };

  std::uint8_t fixed_;
  std::size_t used_ = 0;  ///< of the slots that are not fixed
  std::uint64_t uses_ = 0;
  std::array<Slot, max_thread_slot + std::size_t{1}> slots_{};  ///< by slot number
  std::array<std::uint8_t, 512> hints_{};                       ///< slots by a hash of the thread; may be outdated
};

}  // namespace rtev::fxt
