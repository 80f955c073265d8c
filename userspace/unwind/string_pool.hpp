// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace rtev {

/// Texts one after the other, each with its size in a byte before it.
class StringPool {
 public:
  /// Of longer texts the end is kept: file names differ there, and names of symbols are never as long.
  static constexpr std::size_t max_text = 255;
  static constexpr std::size_t max_bytes = 96u << 20;

  StringPool() : slots_(1024) { add({}); }

  /// Where the text is; 0, the empty one, if the pool is full.
  std::uint32_t add(std::string_view text) {
    if (text.size() > max_text) text.remove_prefix(text.size() - max_text);
    std::size_t slot = std::hash<std::string_view>{}(text) & (slots_.size() - 1);
    // Texts can be made to collide: then some are kept twice.
    bool has_slot = true;
    for (unsigned probes = 0; slots_[slot] != 0 && has_slot; slot = (slot + 1) & (slots_.size() - 1)) {
      if (at(slots_[slot] - 1) == text) return slots_[slot] - 1;
      has_slot = ++probes < max_probes;
    }
    if (bytes_.size() + text.size() >= max_bytes) return 0;
    const auto place = static_cast<std::uint32_t>(bytes_.size());
    bytes_.push_back(static_cast<char>(text.size()));
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    if (!has_slot) return place;
    slots_[slot] = place + 1;
    if (++count_ * 2 > slots_.size()) grow();
    return place;
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span{bytes_}); }

 private:
  static constexpr unsigned max_probes = 64;

  std::string_view at(std::uint32_t place) const {
    return {bytes_.data() + place + 1, static_cast<unsigned char>(bytes_[place])};
  }
  void grow() {
    std::vector<std::uint32_t> old(slots_.size() * 2);
    old.swap(slots_);
    for (const std::uint32_t entry : old) {
      if (entry == 0) continue;
      std::size_t slot = std::hash<std::string_view>{}(at(entry - 1)) & (slots_.size() - 1);
      while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = entry;
    }
  }

  std::vector<char> bytes_;
  std::vector<std::uint32_t> slots_;  // place + 1, 0 = free
  std::size_t count_ = 0;
};

}  // namespace rtev
