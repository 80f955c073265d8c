// SPDX-License-Identifier: MIT
// Finds entries of a map again that were found lately.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rtev {

/// Remembers the places of entries by their keys, which are integers. For maps whose entries keep their place; a search
/// in them takes several times as long. One thread.
template <typename Entry>
class RecentEntries {
 public:
  /// The entry of the key in the map, which is the same in all calls. Null if there is none.
  template <typename Map>
  Entry* find(Map& map, typename Map::key_type key) {
    Place& recent = place(static_cast<std::uint64_t>(key));
    if (recent.entry != nullptr && recent.key == static_cast<std::uint64_t>(key)) return recent.entry;
    const auto found = map.find(key);
    if (found == map.end()) return nullptr;
    recent = {.key = static_cast<std::uint64_t>(key), .entry = &found->second};
    return recent.entry;
  }
  /// To be called before an entry is removed from the map.
  template <typename Key>
  void forget(Key key) {
    place(static_cast<std::uint64_t>(key)) = {};
  }
  /// The same for all entries.
  void clear() { places_ = {}; }

 private:
  struct Place {
    std::uint64_t key = 0;
    Entry* entry = nullptr;
  };
  static constexpr unsigned place_bits = 9;

  Place& place(std::uint64_t key) {
    constexpr std::uint64_t golden_ratio = 0x9E37'79B9'7F4A'7C15;
    return places_[key * golden_ratio >> (64 - place_bits)];
  }

  std::array<Place, std::size_t{1} << place_bits> places_{};
};

}  // namespace rtev
