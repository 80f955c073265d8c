// SPDX-License-Identifier: MIT
// What BPF saved of rings that may be gone before they are read, kept until it is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "bpf/records.h"
#include "processes/rings/saved_ring.hpp"

namespace rtev {

/// Rings by the process and the time of their key. Bounded: beyond that those that were born first, which nobody may
/// ever ask for, make room.
class SavedRings {
 public:
  /// Adds a record of BPF. Records of one ring come in order, those of several mixed.
  void add(const rtev_saved& record, std::span<const std::byte> payload);

  /// The last ring that the process announced in [from_ns, to_ns], as far as it was saved. Forgets it and earlier ones.
  std::optional<SavedRingFile> take(std::int32_t pid, std::uint64_t from_ns, std::uint64_t to_ns);
  /// Forgets the rings that the process announced until then.
  void forget(std::int32_t pid, std::uint64_t until_ns);

  std::size_t size() const { return rings_.size(); }

 private:
  using Key = std::pair<std::uint32_t, std::uint64_t>;  ///< tgid and time
  struct Saved {
    SavedRing ring;
    std::size_t bytes;  ///< of payloads
  };
  using Rings = std::map<Key, Saved>;
  Rings::iterator drop(Rings::iterator ring);
  void drop_first();

  Rings rings_;
  std::size_t bytes_ = 0;  ///< of all payloads
};

}  // namespace rtev
