// SPDX-License-Identifier: MIT
// What a RingReader is going to touch of the mapped file is looked at before: see PageCheck. Pages that are holes are
// read by pread(2), or not at all: to touch them would fill the file with memory.
#include <algorithm>
#include <utility>

#include "ring/reader_state.hpp"

namespace rtev {
namespace {

/// Words that are looked at before they are read: of the ring whose turn it is, and of the ones after it.
constexpr std::uint64_t words_ahead = 1 << 13, others_words_ahead = decode_words;

/// Ranges that are looked at together: a look at one costs little more than one at many.
constexpr std::size_t ranges_ahead = 256;

/// Words of a ring that are looked at before it is known how many there are, and for how many rings at the most.
constexpr std::uint64_t likely_words = 1 << 10, likely_rings = 8;

/// Words of a message that has a time.
constexpr std::uint64_t timed_message_words = 2;

bool is_ready(const PageRange& range) {
  return range.state <= PageState::hole;
}

}  // namespace

/// True if all ranges can be read.
bool RingReader::State::are_ready() {
  map.look_at(ranges);
  return std::ranges::all_of(ranges, is_ready);
}

/// True if this poll can load the header, the indices of all rings or of those in use, and the first messages that show
/// whether rings were created anew. Of a file with many rings these messages are not looked at: that would take longer
/// than to read them. The same look, which is a system call, includes the words that the poll is likely to read.
bool RingReader::State::are_indices_ready(bool all) {
  const std::uint32_t rings = map.layout().rings;
  for (std::uint32_t ring = 0; ring < used; ++ring) cursors[ring].ready = 0;
  first_messages_ready = false;
  looked = rings;
  if (!map.looks_at_pages()) return true;
  if (!all) looked = map.rings_on_pages_of(std::min(rings, used + spare_rings));
  ranges = {map.indices_range(looked)};
  if (!map.has_indices_at_header()) ranges.push_back(map.header_range());
  for (std::uint32_t ring = 0; ring < used && used <= telling_rings; ++ring) {
    const Cursor& cursor = cursors[ring];
    if (cursor.head == 0 && cursor.first_time != 0) ranges.push_back(map.words_range(ring, 0, timed_message_words));
  }
  const std::size_t needed = ranges.size();
  if (used <= likely_rings && !distrusted) add_likely_words();
  map.look_at(ranges, needed);
  const std::span looked_at(ranges);
  for (std::uint32_t ring = 0; ring < looked_at.size() - needed; ++ring) {
    const PageRange& words = looked_at[needed + ring];
    if (words.state == PageState::ready)
      cursors[ring].ready = cursors[ring].position + words.bytes / sizeof(std::uint64_t);
  }
  const auto is_in_memory = [](const PageRange& range) { return range.state == PageState::ready; };
  first_messages_ready = used <= telling_rings && std::ranges::all_of(looked_at.first(needed), is_in_memory);
  return std::ranges::all_of(looked_at.first(needed), is_ready);
}

/// Adds the next words of each ring to the ranges: as many as last time, and the rest of their last page.
void RingReader::State::add_likely_words() {
  for (std::uint32_t ring = 0; ring < used; ++ring) {
    const Cursor& cursor = cursors[ring];
    const std::uint64_t words = std::clamp<std::uint64_t>(cursor.added, 1, likely_words);
    const PageRange least = map.words_range(ring, cursor.position, words);
    const std::uint64_t beyond =
        page_bytes - reinterpret_cast<std::uintptr_t>(least.address + least.bytes) % page_bytes;
    ranges.push_back(map.words_range(ring, cursor.position, words + beyond / sizeof(std::uint64_t)));
  }
}

/// True if event_time() can read the oldest message of each ring that shows to whom the file belongs.
bool RingReader::State::are_messages_ready() {
  if (!map.looks_at_pages()) return true;
  ranges.clear();
  for (std::uint32_t ring = 0; ring < std::min(used, telling_rings); ++ring) {
    const auto [head, tail] = indices[ring];
    if (head < tail) ranges.push_back(map.words_range(ring, head, std::min(tail - head, timed_message_words)));
  }
  return are_ready();
}

/// Looks at the next words of a ring, and of the rings whose turns are next. False if those of this ring cannot be
/// read.
bool RingReader::State::look_ahead(std::uint32_t ring) {
  if (!map.looks_at_pages()) {
    cursors[ring].ready = cursors[ring].tail;
    return true;
  }
  const std::uint64_t ring_words = map.layout().ring_words;
  std::vector<std::pair<Cursor*, std::uint64_t>> pieces;  // with their words, in the order of the ranges
  const auto add = [&](std::uint32_t next, std::uint64_t max_words) {
    Cursor& cursor = cursors[next];
    std::uint64_t position = std::max(cursor.position, cursor.ready);
    for (std::uint64_t left = std::min({cursor.tail - cursor.position, max_words, ring_words}); left > 0;) {
      const std::uint64_t words = std::min(left, ring_words - (position & (ring_words - 1)));
      ranges.push_back(map.words_range(next, position, words));
      pieces.emplace_back(&cursor, words);
      position += words;
      left -= words;
    }
  };
  ranges.clear();
  cursors[ring].ready = cursors[ring].position;
  add(ring, words_ahead);
  for (std::uint32_t offset = 1; offset < used && ranges.size() + 2 <= ranges_ahead; ++offset) {
    const std::uint32_t next = (ring + offset) % used;
    if (cursors[next].ready <= cursors[next].position) add(next, others_words_ahead);
  }
  map.look_at(ranges);
  const Cursor* not_ready = nullptr;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    auto& [cursor, words] = pieces[i];
    if (!is_ready(ranges[i])) not_ready = cursor;
    if (cursor == not_ready) continue;
    cursor->ready = std::max(cursor->ready, cursor->position) + words;
    distrusted |= ranges[i].state == PageState::hole;
  }
  return is_next_chunk_ready(cursors[ring]);
}

/// True if look_ahead() has seen what read_chunk() is to read.
bool RingReader::State::is_next_chunk_ready(const Cursor& cursor) const {
  const std::uint64_t words = std::min<std::uint64_t>(decode_words, map.layout().ring_words);
  return cursor.ready >= std::min(cursor.tail, cursor.position + words);
}

/// True if the name of a user event can be read: it is in no hole. The names of a page are looked at together.
bool RingReader::State::is_name_ready(std::uint16_t id) {
  const std::uint64_t names_offset = map.layout().names_offset;
  if (!map.looks_at_pages() || names_offset == 0) return true;
  const std::uint64_t begin = names_offset + id * user_event_name_bytes, end = begin + user_event_name_bytes;
  for (std::uint64_t page = begin / page_bytes; page * page_bytes < end; ++page) {
    const std::size_t number = page - names_offset / page_bytes;
    if (!search.looked[number]) {
      search.looked.set(number);
      ranges = {map.names_range(page * page_bytes, page_bytes)};
      map.look_at(ranges);
      search.ready[number] = ranges.front().state == PageState::ready;
    }
    if (!search.ready[number]) return false;
  }
  return true;
}

}  // namespace rtev
