// SPDX-License-Identifier: MIT
#include "formats/fxt/slot_tables.hpp"

#include <limits>
#include <utility>

#include "formats/fxt/metadata_writer.hpp"

namespace rtev::record {

fxt::StringRef StringTable::define(StringId id, std::string_view text, std::uint64_t batch, bool may_change) {
  StringId keyed = id;
  keyed.known = false;
  const std::uint64_t key = keyed.pack();
  const auto [found, is_new] = by_key_.try_emplace(key, std::uint16_t{0});
  if (is_new) found->second = take_slot();
  const std::uint16_t slot = found->second;
  cache_[place(key)] = {
      .key = key, .checked_in = may_change ? batch : std::numeric_limits<std::uint64_t>::max(), .slot = slot};
  Entry& entry = entries_[slot];
  entry.key = key;
  text = clipped(text);
  if (!is_new) {
    if (!may_change) return {slot};
    const bool was_known = entry.text.front() == '+';
    if (was_known == id.known && std::string_view(entry.text).substr(1) == text) return {slot};
  }
  if (may_change) {
    entry.text.assign(1, id.known ? '+' : '-');
    entry.text += text;
  }
  const fxt::StringRef ref = writer_.set_string(slot, text);
  Metadata(writer_, metadata_string, id.pack()).write(0, {}, ref);
  return ref;
}

std::uint16_t StringTable::take_slot() {
  const std::uint16_t slot = next_;
  next_ = slot == slots ? 1 : static_cast<std::uint16_t>(slot + 1);
  if (slot == entries_.size()) {
    entries_.emplace_back();
  } else {
    const std::uint64_t before = entries_[slot].key;
    by_key_.erase(before);
    if (Cached& cached = cache_[place(before)]; cached.key == before) cached = {};
    entries_[slot] = {};
  }
  return slot;
}

fxt::ThreadRef SourceThreads::define(std::uint64_t key, const Track& track) {
  const auto [found, is_new] = by_key_.try_emplace(key, std::uint8_t{0});
  if (is_new) {
    const std::uint8_t slot = take_slot();
    found->second = slot;
    entries_[slot] = {.key = key, .taken = true};
    const fxt::ThreadRef ref =
        writer_.set_thread(slot, static_cast<std::uint32_t>(track.pid), static_cast<std::uint32_t>(track.tid));
    Metadata(writer_, metadata_source, static_cast<std::uint32_t>(key >> 32)).write(0, ref, {});
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
    by_key_.erase(entry.key);
    return slot;
  }
}

}  // namespace rtev::record
