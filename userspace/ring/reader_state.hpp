// SPDX-License-Identifier: MIT
// What a RingReader knows of its file, and how it goes through it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ring/chunk.hpp"
#include "ring/ring_map.hpp"
#include "rtev/ring_reader.hpp"

namespace rtev {

struct RingReader::State {
  RingMap map;
  Options options;
  Layout layout;  ///< of the file that the cursors are in; that of the map may be the next program's
  std::vector<Cursor> cursors;
  std::vector<RingIndices> indices;
  std::uint32_t used = 0;       ///< one past the last ring that was ever found written to
  std::uint32_t next_ring = 0;  ///< where the next poll begins
  std::uint32_t polls = 0;
  std::uint32_t faults = 0;  ///< in a row
  bool faulted = false;      ///< in this poll
  Polled polled;             ///< by this poll
  std::uint32_t incarnation = 0;
  bool truncated = false;
  bool sealed = false;
  bool taken_over = false;
  bool is_copy = false;  ///< of a file that is gone
  std::unordered_map<std::uint16_t, std::string> names;
  std::uint16_t settled_names = 0;      ///< so many from the first on are not read again
  std::deque<std::uint32_t> new_names;  ///< in which poll each of those behind was seen first

  State(RingMap opened, Options given) : map(std::move(opened)), options(std::move(given)) { resize(); }

  void resize() {
    layout = map.layout();
    cursors.resize(std::max<std::size_t>(cursors.size(), map.layout().rings));
    indices.assign(map.layout().rings, {});
    used = std::min(used, map.layout().rings);
  }

  std::uint32_t source(std::uint32_t ring) const {
    return Source{options.slot, static_cast<std::uint16_t>(ring)}.pack();
  }

  std::optional<Producer> producer() const;
  bool belongs_to_program();
  bool is_successors();
  bool is_emptied() const;
  void begin();
  bool begin_poll(bool all);
  Polled end_poll();
  bool load(bool all = true);
  bool load_indices(bool all);
  bool made_anew(std::uint32_t ring);
  std::optional<std::uint64_t> event_time(std::uint32_t ring, std::uint64_t position);
  void skip(Cursor& cursor, LossReason reason, std::uint64_t to);
  void settle(Cursor& cursor);
  void restart(Cursor& cursor);
  void keep_names();
  void next_incarnation();
  void recheck();
  void give_up();
  void go_on_in(RingMap copy);
  bool leave_alone();
  bool is_foreign(const Cursor& cursor);
  void take(std::uint32_t ring);
  void read(std::uint32_t ring, Call call, void* consumer, std::uint64_t& budget);
  bool decode_in_place(std::uint32_t ring, std::uint64_t size, Chunk& chunk, DecodeResult& decoded);
  bool read_chunk(std::uint32_t ring, Call call, void* consumer);
};

}  // namespace rtev
