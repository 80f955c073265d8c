// SPDX-License-Identifier: MIT
#include "formats/fxt/thread_table.hpp"

#include <utility>

#include "formats/fxt/metadata.hpp"

namespace rtev::record {

fxt::ThreadRef SourceThreads::define(Key key, const Track& track) {
  const auto [found, is_new] = by_key_.try_emplace(bits(key), std::uint8_t{0});
  if (is_new) {
    const std::uint8_t slot = take_slot();
    found->second = slot;
    entries_[slot] = {.key = key, .taken = true};
    const fxt::ThreadRef ref =
        writer_.set_thread(slot, static_cast<std::uint32_t>(track.pid), static_cast<std::uint32_t>(track.tid));
    Metadata(writer_, metadata_source, key.source).write(0, ref, {});
  }
  const std::uint8_t slot = found->second;
  entries_[slot].used = true;
  cache_[place(key)] = slot;
  return {slot};
}

/// The next slot, in turn, that was not used since the last round.
std::uint8_t SourceThreads::take_slot() {
  while (true) {
    const std::uint8_t slot = next_;
    next_ = slot == fxt::max_thread_slot ? 1 : static_cast<std::uint8_t>(slot + 1);
    Entry& entry = entries_[slot];
    if (!entry.taken) return slot;
    if (std::exchange(entry.used, false)) continue;
    by_key_.erase(bits(entry.key));
    return slot;
  }
}

}  // namespace rtev::record
