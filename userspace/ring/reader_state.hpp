// SPDX-License-Identifier: MIT
// The state of a RingReader.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "ring/decode_buffer.hpp"
#include "ring/name_table.hpp"
#include "ring/reader_access.hpp"
#include "ring/ring_map.hpp"
#include "rtev/ring_reader.hpp"

namespace rtev {

/// What the search for names has found out since the last poll.
struct NameSearch {
  bool began = false;
  std::bitset<user_event_slots> unnamed;  ///< ids whose names were asked for, and were empty
  /// Pages of the names that were looked at, and that can be read.
  std::bitset<user_event_names_bytes / page_bytes + 1> looked, ready;
};

/// Rings that poll_used() checks beyond the last one with words.
inline constexpr std::uint32_t spare_rings = 8;

/// Rings that show whether a file belongs to an image: OCaml's runtime numbers domains from 0, and 128 is its default.
inline constexpr std::uint32_t telling_rings = 128;

struct RingReader::State {
  RingMap map;
  Options options;
  std::optional<RingOwner> owner;  ///< if set, a file that is reused by another image is left alone
  rtev::Layout layout;             ///< of the file that the cursors are in; the map may have another image's already
  std::vector<Cursor> cursors;
  std::vector<RingIndices> indices;
  std::uint32_t used = 0;             ///< one past the last ring with words
  std::uint32_t looked = UINT32_MAX;  ///< rings whose indices this poll has looked at, and may load; see PageCheck
  /// This poll found in memory the first messages that show whether rings were created anew.
  bool first_messages_ready = false;
  std::uint32_t next_ring = 0;  ///< where the next poll begins
  std::uint32_t polls = 0;
  std::uint32_t faults = 0;           ///< in a row
  bool faulted = false;               ///< in this poll
  bool distrusted = false;            ///< a ring of the file was corrupt: its words may lie in holes
  std::uint32_t unchecked_rings = 0;  ///< see is_still_owners()
  std::uint64_t loaded_ns = 0;        ///< when indices were loaded last
  std::uint64_t possible_words = 0;   ///< that can have been written since the last poll; see believe()
  Polled polled;                      ///< by this poll
  bool names_needed = false;          ///< this poll reads names: it is one of all domains, or read user events
  std::uint32_t incarnation = 0;
  bool truncated = false;
  bool sealed = false;
  bool taken_over = false;
  bool is_copy = false;             ///< of a file that is gone
  std::optional<bool> is_mapped{};  ///< of a small file: all cursors'
  NameTable names;
  bool names_full = false;  ///< there is no memory for more of them
  NameSearch search;
  std::uint16_t settled_names = 0;      ///< number of names, from id 0, that are not read again
  std::deque<std::uint32_t> new_names;  ///< number of the poll that found each of the names after those
  std::vector<PageRange> ranges;        ///< to look at; kept for its memory

  State(RingMap opened, const Options& given, std::optional<RingOwner> known_owner)
      : map(std::move(opened)), options(given), owner(std::move(known_owner)) {
    resize();
  }

  void resize() {
    layout = map.layout();
    cursors.resize(std::max<std::size_t>(cursors.size(), map.layout().rings));
    indices.assign(map.layout().rings, {});
    used = std::min(used, map.layout().rings);
    search = {};
  }

  std::uint32_t source(std::uint32_t ring) const {
    return Source{options.slot, static_cast<std::uint16_t>(ring)}.pack();
  }

  // The image that the file belongs to.
  std::optional<Producer> producer() const;
  bool belongs_to_owner();
  bool has_successor_events();
  bool may_be_emptied() const;
  bool is_foreign(const Cursor& cursor);
  bool is_still_owners(const Cursor& cursor);
  bool leave_alone();

  // Polls.
  void begin();
  bool begin_poll(bool all);
  Polled end_poll();
  bool load(bool all = true);
  bool load_indices(bool all);
  void take_indices(std::uint32_t ring);
  bool may_map(Cursor& cursor);
  void read(std::uint32_t ring, Call call, std::uint64_t& budget);
  bool decode_in_place(std::uint32_t ring, std::uint64_t size, DecodeBuffer& buffer, DecodeResult& decoded);
  bool read_chunk(std::uint32_t ring, Call call);
  std::optional<std::uint64_t> event_time(std::uint32_t ring, std::uint64_t position);
  void keep_names();
  bool may_use_memory(std::size_t bytes) const;
  bool has_room_for_name(std::uint16_t id) const;
  std::string_view find_name(std::uint16_t id);

  // Pages of the file.
  bool are_ready();
  bool are_indices_ready(bool all);
  void add_likely_words();
  bool are_messages_ready();
  bool look_ahead(std::uint32_t ring);
  bool is_next_chunk_ready(const Cursor& cursor) const;
  bool is_name_ready(std::uint16_t id);

  // Losses, and changes of the file.
  void skip(Cursor& cursor, LossReason reason, std::uint64_t to);
  std::uint64_t believe(std::uint64_t words);
  void skip_invented(Cursor& cursor, std::uint64_t words);
  std::uint64_t max_words_of_life() const;
  void lose_expected(Cursor& cursor);
  bool created_anew(std::uint32_t ring);
  void restart(Cursor& cursor);
  void begin_incarnation();
  void recheck();
  void abandon();
  void continue_in_copy(RingMap copy);
};

}  // namespace rtev
