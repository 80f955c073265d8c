// SPDX-License-Identifier: MIT
#include "fxt/string_slots.hpp"

#include <utility>

namespace rtev::fxt {

std::uint16_t StringSlots::take_temporary() {
  if (first_interned_ == fixed_ + 1) return 0;
  const std::uint16_t slot = next_temporary_++;
  if (next_temporary_ == first_interned_) next_temporary_ = static_cast<std::uint16_t>(fixed_ + 1);
  return slot;
}

std::uint16_t StringSlots::find(std::string_view text) const {
  const auto found = interned_.find(text);
  return found == interned_.end() ? std::uint16_t{0} : found->second;
}

std::uint16_t StringSlots::intern(std::string_view text) {
  bytes_left_ -= text.size();
  interned_.emplace(text, next_interned_);
  return next_interned_++;
}

std::string_view StringSlots::text_of(std::uint16_t slot) const {
  for (const auto& [text, its_slot] : interned_) {
    if (its_slot == slot) return text;
  }
  return {};
}

}  // namespace rtev::fxt
