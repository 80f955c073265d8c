// SPDX-License-Identifier: MIT
#include "processes/rings/saved_rings.hpp"

#include <algorithm>
#include <cstring>

namespace rtev {
namespace {

/// Each holds a descriptor. More than the rings that fit in BPF's buffer.
constexpr std::size_t max_saved_rings = 4096;

/// Many times the size of BPF's buffer.
constexpr std::size_t max_bytes = 256 << 20;

}  // namespace

void SavedRings::add(const rtev_saved& record, std::span<const std::byte> payload) {
  const Key key{record.tgid, record.announced_ns};
  if (record.type == RTEV_SAVED_RING) {
    FileHeader header{};
    if (rings_.contains(key) || payload.size() < sizeof header) return;
    std::memcpy(&header, payload.data(), sizeof header);
    if (rings_.size() >= max_saved_rings) drop_first();
    if (auto created = SavedRing::create(header, record.end))
      rings_.emplace(key, Saved{.ring = std::move(*created), .bytes = 0});
    return;
  }
  if (bytes_ + payload.size() > max_bytes) drop_first();
  const auto found = rings_.find(key);
  if (found == rings_.end()) return;
  auto& [ring, bytes] = found->second;
  bytes += payload.size();
  bytes_ += payload.size();
  switch (record.type) {
    case RTEV_SAVED_WORDS:
      return ring.add_words(record.domain, record.begin, payload);
    case RTEV_SAVED_DOMAIN:
      return ring.add_domain(record.domain, record.begin, record.end);
    case RTEV_SAVED_NAME:
      return ring.add_name(record.begin, payload);
    case RTEV_SAVED_LAST:
      return ring.note_last();
    default:
      return;
  }
}

std::optional<SavedRingFile> SavedRings::take(std::int32_t pid, std::uint64_t from_ns, std::uint64_t to_ns) {
  const auto tgid = static_cast<std::uint32_t>(pid);
  auto found = rings_.upper_bound({tgid, to_ns});
  if (found == rings_.begin() || (--found)->first < Key{tgid, from_ns}) return std::nullopt;
  auto file = found->second.ring.finish();
  forget(pid, to_ns);
  if (!file) return std::nullopt;
  return std::move(*file);
}

void SavedRings::forget(std::int32_t pid, std::uint64_t until_ns) {
  const auto tgid = static_cast<std::uint32_t>(pid);
  for (auto ring = rings_.lower_bound({tgid, 0}); ring != rings_.end() && ring->first <= Key{tgid, until_ns};)
    ring = drop(ring);
}

SavedRings::Rings::iterator SavedRings::drop(Rings::iterator ring) {
  bytes_ -= ring->second.bytes;
  return rings_.erase(ring);
}

void SavedRings::drop_first() {
  const auto first = std::ranges::min_element(rings_, {}, [](const auto& ring) { return ring.first.second; });
  if (first != rings_.end()) drop(first);
}

}  // namespace rtev
