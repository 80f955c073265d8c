// SPDX-License-Identifier: MIT
// Which slot of a provider's string table holds what: fixed slots first, then those used in turns, then interned ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "rtev/fxt.hpp"

namespace rtev::fxt {

/// Chooses slots; its user writes the records that define them. Slot 0 says that there is none.
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

  /// The next of those used in turns; 0 if there are none.
  std::uint16_t take_temporary();

  /// The slot of a text that was interned, or 0.
  std::uint16_t find(std::string_view text) const;
  bool has_room_for(std::string_view text) const {
    return next_interned_ <= max_string_slot && text.size() <= bytes_left_;
  }
  /// The slot that intern() gives next.
  std::uint16_t next_interned() const { return next_interned_; }
  /// The next slot, for a text that has_room_for().
  std::uint16_t intern(std::string_view text);
  /// The text of an interned slot, else empty. Slow: for messages.
  std::string_view text_of(std::uint16_t slot) const;

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

}  // namespace rtev::fxt
