// SPDX-License-Identifier: MIT
#include "discover/drained_rings.hpp"

#include <cstring>

namespace rtev {
namespace {

/// Each takes a descriptor. More than the births that the kernel side can tell of while nobody listens.
constexpr std::size_t most_rings = 4096;

/// Many times the kernel side's buffer.
constexpr std::size_t most_bytes = 256 << 20;

}  // namespace

void DrainedRings::add(const rtev_drained& record, std::span<const std::byte> payload) {
  if (bytes_ + payload.size() > most_bytes) return;
  const Birth birth{record.tgid, record.birth_ns};
  auto ring = rings_.find(birth);
  if (record.type == RTEV_DRAINED_RING) {
    FileHeader header{};
    if (ring != rings_.end() || rings_.size() >= most_rings || payload.size() < sizeof header) return;
    std::memcpy(&header, payload.data(), sizeof header);
    if (auto created = DrainedRing::create(header, record.end)) rings_.emplace(birth, std::move(*created));
    return;
  }
  if (ring == rings_.end()) return;
  bytes_ += payload.size();
  switch (record.type) {
    case RTEV_DRAINED_WORDS:
      return ring->second.add_words(record.domain, record.begin, payload);
    case RTEV_DRAINED_DOMAIN:
      return ring->second.add_domain(record.domain, record.begin, record.end);
    case RTEV_DRAINED_NAME:
      return ring->second.add_name(record.begin, payload);
    default:
      return;
  }
}

std::optional<DrainedFile> DrainedRings::take(std::int32_t pid, std::uint64_t from_ns, std::uint64_t to_ns) {
  const auto tgid = static_cast<std::uint32_t>(pid);
  auto ring = rings_.upper_bound({tgid, to_ns});
  if (ring == rings_.begin() || (--ring)->first < Birth{tgid, from_ns}) return std::nullopt;
  auto file = ring->second.finish();
  forget(pid, to_ns);
  if (!file) return std::nullopt;
  return std::move(*file);
}

void DrainedRings::forget(std::int32_t pid, std::uint64_t until_ns) {
  const auto tgid = static_cast<std::uint32_t>(pid);
  rings_.erase(rings_.lower_bound({tgid, 0}), rings_.upper_bound({tgid, until_ns}));
  if (rings_.empty()) bytes_ = 0;
}

}  // namespace rtev
