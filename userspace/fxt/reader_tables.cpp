// SPDX-License-Identifier: MIT
#include "fxt/reader_tables.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rtev::fxt {

bool StringTable::take(std::size_t bytes) {
  if (!budget_->take(bytes)) return false;
  taken_ += bytes;
  return true;
}

bool StringTable::set(std::uint16_t index, std::string_view text) {
  constexpr std::size_t least_slots = 64, least_bytes = 16;
  if (index >= slots_.size()) {
    const std::size_t slots = std::max(least_slots, std::bit_ceil(std::size_t{index} + 1));
    if (!take((slots - slots_.size()) * sizeof(Slot))) return false;
    slots_.resize(slots);
  }
  Slot& slot = slots_[index];
  if (slot.bytes == nullptr || text.size() > slot.capacity) {
    // Rounded up, so that a slot which is set to longer and longer strings is seldom made anew.
    const std::size_t capacity = std::max(least_bytes, std::bit_ceil(text.size()));
    if (!take(capacity - slot.capacity)) return false;
    slot.bytes = std::make_unique_for_overwrite<char[]>(capacity);
    slot.capacity = static_cast<std::uint32_t>(capacity);
  }
  if (!text.empty()) std::memcpy(slot.bytes.get(), text.data(), text.size());
  slot.size = static_cast<std::uint32_t>(text.size());
  return true;
}

Providers::Providers(std::size_t max_providers, std::size_t string_bytes)
    : max_providers_(max_providers),
      budget_(string_bytes),
      current_(&providers_.try_emplace(0, 0u, budget_).first->second) {}

bool Providers::introduce(std::uint32_t id) {
  providers_.erase(id);
  if (providers_.size() == max_providers_) return false;
  current_ = &providers_.try_emplace(id, id, budget_).first->second;
  return true;
}

bool Providers::select(std::uint32_t id) {
  const auto found = providers_.find(id);
  if (found == providers_.end()) return false;
  current_ = &found->second;
  return true;
}

}  // namespace rtev::fxt
