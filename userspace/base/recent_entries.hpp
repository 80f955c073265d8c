// SPDX-License-Identifier: MIT
// Remembers where entries of a map were found lately.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rtev {

/// In front of a map whose entries keep their place: looking there takes several times as long. Whether it is the
/// entry that is looked for, is for the caller to see.
template <typename Entry>
class RecentEntries {
 public:
  /// The entry that was last noted for this id, or for another one; null if there is none.
  Entry*& at(std::int32_t id) { return entries_[static_cast<std::uint32_t>(id) % places]; }
  /// Before the entry of an id is removed.
  void forget(std::int32_t id) { at(id) = nullptr; }
  void clear() { entries_ = {}; }

 private:
  static constexpr std::size_t places = 512;
  std::array<Entry*, places> entries_{};
};

}  // namespace rtev
