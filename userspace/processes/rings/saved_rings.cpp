// SPDX-License-Identifier: MIT
#include "processes/rings/saved_rings.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/background_close.hpp"
#include "base/subordinate_users.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);

bool exceeds_file_limit(std::uint64_t size) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur;
}

/// Adds an interval to a set of disjoint ones, and joins those that touch.
void add_interval(std::map<std::uint64_t, std::uint64_t>& intervals, std::uint64_t begin, std::uint64_t end) {
  auto next = intervals.upper_bound(begin);
  if (next != intervals.begin() && std::prev(next)->second >= begin) --next;
  while (next != intervals.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = intervals.erase(next);
  }
  intervals.emplace(begin, end);
}

/// Removes what lies before a position from them.
void drop_before(std::map<std::uint64_t, std::uint64_t>& intervals, std::uint64_t position) {
  while (!intervals.empty() && intervals.begin()->first < position) {
    const std::uint64_t end = intervals.begin()->second;
    intervals.erase(intervals.begin());
    if (end > position) intervals.emplace(position, end);
  }
}

/// Each holds a descriptor. More than the rings that fit in BPF's buffer.
constexpr std::size_t max_saved_rings = 4096;

/// What a ring takes besides its file.
constexpr std::size_t state_bytes = 4096;

}  // namespace

Result<SavedRing> SavedRing::create(const FileHeader& header, std::uint64_t file_bytes) {
  const auto layout = check_layout(header, file_bytes);
  if (!layout) return std::unexpected(layout.error());
  if (exceeds_file_limit(file_bytes))  // the attempt would kill the tracer
    return errno_error(EFBIG, "cannot restore saved ring", {}, "raise the limit of file sizes (ulimit -f)");
  SavedRing ring({UniqueFd(::memfd_create("saved.events", MFD_CLOEXEC), close_in_background), *layout});
  if (!ring.fd_ || ::ftruncate(ring.fd_.get(), static_cast<off_t>(file_bytes)) != 0 ||
      !ring.write(0, std::as_bytes(std::span(&header, 1))))
    return errno_error(errno, "cannot restore saved ring");
  return ring;
}

bool SavedRing::write(std::uint64_t offset, std::span<const std::byte> bytes) const {
  const ssize_t written = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  return written == std::ssize(bytes);
}

std::uint64_t SavedRing::word_offset(std::uint32_t domain, std::uint64_t position) const {
  return layout_.data_offset + (domain * layout_.ring_words + (position & (layout_.ring_words - 1))) * word_bytes;
}

void SavedRing::add_words(std::uint32_t domain, std::uint64_t begin, std::span<const std::byte> words) {
  std::uint64_t count = words.size() / word_bytes;
  if (domain >= layout_.rings || count == 0 || count > layout_.ring_words || begin > UINT64_MAX - count) return;
  const std::uint64_t end = begin + count;
  last_ = false;
  Domain& state = domains_[domain];
  // Newer words replace older ones in the same place of the ring.
  const std::uint64_t newest = std::max(state.end, end);
  const std::uint64_t oldest = newest > layout_.ring_words ? newest - layout_.ring_words : 0;
  if (end <= oldest) return;
  if (begin < oldest) {
    words = words.subspan((oldest - begin) * word_bytes);
    begin = oldest;
    count = end - begin;
  }
  drop_before(state.pieces, oldest);
  state.end = newest;

  const std::uint64_t until_wrap = layout_.ring_words - (begin & (layout_.ring_words - 1));
  const std::uint64_t first = std::min(count, until_wrap);
  if (!write(word_offset(domain, begin), words.first(first * word_bytes)) ||
      (first < count && !write(word_offset(domain, begin + first), words.subspan(first * word_bytes))))
    return;
  add_interval(state.pieces, begin, end);
}

void SavedRing::add_domain(std::uint32_t domain, std::uint64_t head, std::uint64_t tail) {
  if (domain >= layout_.rings || head > tail || tail - head > layout_.ring_words) return;
  last_ = false;
  Domain& state = domains_[domain];
  state.head = std::max(state.head, head);
  state.tail = std::max(state.tail, tail);
}

void SavedRing::add_name(std::uint64_t id, std::span<const std::byte> name) {
  if (layout_.names_offset == 0 || id >= user_event_slots || name.size() != user_event_name_bytes) return;
  // Without its name the event is shown by its number.
  [[maybe_unused]] const bool written = write(layout_.names_offset + id * user_event_name_bytes, name);
}

std::size_t SavedRing::memory_bytes() const {
  constexpr std::size_t block = 512;  // of fstat(2)
  struct stat status{};
  return ::fstat(fd_.get(), &status) == 0 ? static_cast<std::size_t>(status.st_blocks) * block : 0;
}

/// End of the last message that lies in [begin, end) as a whole, where a message begins at `begin`.
Result<std::uint64_t> SavedRing::last_message_end(std::uint32_t domain, std::uint64_t begin, std::uint64_t end) const {
  const int fd = fd_.get();
  while (begin < end) {
    std::uint64_t word = 0;
    if (::pread(fd, &word, sizeof word, static_cast<off_t>(word_offset(domain, begin))) != sizeof word)
      return errno_error(errno, "cannot restore saved ring");
    const std::uint64_t length = word >> message::length_shift;
    if (length == 0 || length > end - begin) break;
    begin += length;
  }
  return begin;
}

Result<SavedRingFile> SavedRing::finish() {
  SavedRingFile file{.fd = {}, .cut = {}, .last = last_, .memory_bytes = memory_bytes()};
  for (auto& [domain, state] : domains_) {
    if (state.tail == 0) {
      if (state.pieces.empty()) continue;
      // The record with head and tail was dropped. The first words that were saved begin with a message.
      std::tie(state.head, state.tail) = *state.pieces.begin();
    }
    auto piece = state.pieces.upper_bound(state.head);
    std::uint64_t end = state.head;
    if (piece != state.pieces.begin()) end = std::clamp((--piece)->second, state.head, state.tail);
    if (end < state.tail) {
      const auto message_end = last_message_end(domain, state.head, end);
      if (!message_end) return std::unexpected(message_end.error());
      end = *message_end;
      file.cut.push_back({.domain = static_cast<std::uint16_t>(domain), .written = state.tail});
    }
    const std::array<std::uint64_t, 2> indices{state.head, end};
    if (!write(layout_.headers_offset + domain * layout_.ring_header_stride, std::as_bytes(std::span(indices))))
      return errno_error(errno, "cannot restore saved ring");
  }
  file.fd = std::move(fd_);
  return file;
}

void SavedRings::add(const rtev_saved& record, std::span<const std::byte> payload) {
  const Key key{record.tgid, record.announced_ns};
  if (record.type == RTEV_SAVED_RING) {
    FileHeader header{};
    if (rings_.contains(key) || payload.size() < sizeof header) return;
    std::memcpy(&header, payload.data(), sizeof header);
    auto created = SavedRing::create(header, record.end);
    if (!created) return;
    const std::uint32_t user = charged_user(record.uid);
    rings_.emplace(key, Saved{.ring = std::move(*created), .user = user});
    by_user_.try_emplace(user);
  }
  const auto found = rings_.find(key);
  if (found == rings_.end()) return;
  SavedRing& ring = found->second.ring;
  switch (record.type) {
    case RTEV_SAVED_WORDS:
      ring.add_words(record.domain, record.begin, payload);
      break;
    case RTEV_SAVED_DOMAIN:
      ring.add_domain(record.domain, record.begin, record.end);
      break;
    case RTEV_SAVED_NAME:
      ring.add_name(record.begin, payload);
      break;
    case RTEV_SAVED_LAST:
      ring.note_last();
      break;
    default:
      break;
  }
  const std::uint32_t user = found->second.user;
  const std::size_t bytes = state_bytes + ring.memory_bytes(), before = std::exchange(found->second.bytes, bytes);
  bytes_ += bytes - before;
  by_user_[user] += bytes - before;
  make_room(user);
}

void SavedRings::make_room(std::uint32_t user) {
  while (by_user_.contains(user) && by_user_[user] > max_bytes_ / 4 * 3) drop_first(user);
  while (bytes_ > max_bytes_ || rings_.size() > max_saved_rings)
    drop_first(std::ranges::max_element(by_user_, {}, [](const auto& entry) { return entry.second; })->first);
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
  const auto user = by_user_.find(ring->second.user);
  bytes_ -= ring->second.bytes;
  user->second -= ring->second.bytes;
  if (user->second == 0) by_user_.erase(user);
  return rings_.erase(ring);
}

void SavedRings::drop_first(std::uint32_t user) {
  auto first = rings_.end();
  for (auto ring = rings_.begin(); ring != rings_.end(); ++ring) {
    if (ring->second.user == user && (first == rings_.end() || ring->first.second < first->first.second)) first = ring;
  }
  drop(first);
}

}  // namespace rtev
