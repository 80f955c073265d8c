// SPDX-License-Identifier: MIT
// Watches over the file: what was written, whose it is, whether it is still there.
#include "ring/reader_state.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace rtev {
namespace {

/// Polls between two looks at the file's size. A shrunk file is also noticed when reading it faults, and one that was
/// made anew by its header and indices.
constexpr std::uint32_t polls_between_refreshes = 256;

/// Polls after which a name is taken to be complete: a second, or more.
constexpr std::uint32_t polls_until_settled = 1024;

/// Rings looked at, by poll_used(), beyond those that were ever written to.
constexpr std::uint32_t spare_rings = 8;

/// Faults in a row, with the file's size unchanged, after which the ring is given up: the disk fails.
constexpr std::uint32_t most_faults = 8;

/// Attempts at the oldest event of a ring that is being written.
constexpr std::uint32_t most_tries = 16;

}  // namespace

/// Who says in the file to write it.
std::optional<Producer> RingReader::State::producer() const {
  const auto mark = map.read_mark();
  if (!mark || mark->magic != ProducerMark::magic_value || mark->version != ProducerMark::current_version ||
      mark->family > static_cast<std::uint32_t>(Family::since_5_3))
    return std::nullopt;
  const std::string name(mark->producer, ::strnlen(mark->producer, sizeof mark->producer));
  const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (name.empty() || name.size() == sizeof mark->producer || !std::ranges::all_of(name, is_printable))
    return std::nullopt;
  return Producer{.name = name, .family = static_cast<Family>(mark->family)};
}

/// False if a ring's oldest event is older than the ring itself, so that the file is a predecessor's, not yet made
/// anew; or younger than the end of its program, so that a successor made it anew already.
bool RingReader::State::belongs_to_program() {
  if (!load()) return false;
  bool has_events = false;
  for (std::uint32_t ring = 0; ring < map.layout().rings; ++ring) {
    const auto oldest = event_time(ring, indices[ring].head);
    if (!oldest) continue;
    if (*oldest < options.made_ns || *oldest > options.ended_ns) return false;
    has_events = true;
  }
  // A program that runs may be about to write its first one.
  return has_events || options.ended_ns == UINT64_MAX;
}

/// True if a ring's oldest event is younger than the end of its program: a successor made the file anew. It may have
/// written so much since that the indices do not show it.
bool RingReader::State::is_successors() {
  if (options.ended_ns == UINT64_MAX) return false;
  for (std::uint32_t ring = 0; ring < used; ++ring) {
    const RingIndices& now = indices[ring];
    for (std::uint32_t tries = 0; tries < most_tries && now.head < now.tail; ++tries) {
      if (const auto oldest = event_time(ring, now.head)) {
        if (*oldest > options.ended_ns) return true;
        break;
      }
      // Overwritten meanwhile.
      if (!map.load_indices(std::span(indices).first(used))) return false;
    }
  }
  return false;
}

/// True if nothing was ever seen in the file, and the next program may have begun to make it anew before that.
bool RingReader::State::is_emptied() const {
  const auto is_empty = [](const auto& ring) { return ring.tail == 0; };
  return std::ranges::all_of(indices, is_empty) && std::ranges::all_of(cursors, is_empty) && options.is_latest &&
         !options.is_latest() && !producer();
}

/// Decides, for what was written before the ring was opened, what is history and what is handed out.
void RingReader::State::begin() {
  // A file that is cut short already is left to the first poll.
  if (!load()) return;
  for (std::uint32_t ring = 0; ring < map.layout().rings; ++ring) {
    Cursor& cursor = cursors[ring];
    const RingIndices& now = indices[ring];
    const std::uint64_t head = std::min(now.head, now.tail);
    std::uint64_t start = head;
    if (head == 0) cursor.birth = event_time(ring, 0).value_or(0);
    if (options.history == History::skip) {
      const bool newborn = cursor.birth != 0 && cursor.birth >= options.born_since_ns;
      if (!newborn) start = now.tail;
    }
    cursor.position = start;
    cursor.head = head;
    cursor.tail = now.tail;
    cursor.past.before_attach = start;
  }
}

bool RingReader::State::begin_poll(bool all) {
  faulted = false;
  polled = {};
  if (++polls % polls_between_refreshes == 0 || truncated || !map.same_header()) recheck();
  return !truncated && load(all || sealed);
}

Polled RingReader::State::end_poll() {
  if (polled.delivered_words > 0) keep_names();
  if (faulted) {
    // Either the file was cut short, or its disk fails.
    ++faults;
    recheck();
    if (faults >= most_faults) give_up();
    if (!truncated) polled.complete = false;
  }
  return polled;
}

/// Loads the indices of all rings, or of those that were used and some more, as long as these are in use, too.
bool RingReader::State::load_indices(bool all) {
  const std::uint32_t rings = map.layout().rings;
  for (std::uint32_t loaded = 0;;) {
    const std::uint32_t wanted = all ? rings : std::min(rings, used + spare_rings);
    if (loaded >= wanted) return true;
    if (!map.load_indices(std::span(indices).first(wanted))) return false;
    loaded = wanted;
    for (std::uint32_t ring = used; ring < wanted; ++ring) {
      if (indices[ring].tail != 0 || indices[ring].head != 0) used = ring + 1;
    }
  }
}

/// Takes the newest indices; restarts rings that were made anew. False if there is nothing to read.
bool RingReader::State::load(bool all) {
  if (!load_indices(all)) {
    faulted = true;
    return false;
  }
  if (is_copy) {
    // More was seen than was saved, perhaps: that is lost, but nothing was made anew.
    for (std::uint32_t ring = 0; ring < used; ++ring)
      indices[ring].tail = std::max(indices[ring].tail, cursors[ring].position);
    return true;
  }
  bool anew = sealed && (is_successors() || is_emptied());
  for (std::uint32_t ring = 0; ring < used && !anew; ++ring) anew = made_anew(ring);
  if (!anew) return true;
  if (leave_alone()) return false;
  for (std::uint32_t ring = 0; ring < used; ++ring) {
    // Indices that did not move are still the old ones: the new program has not come to them yet.
    if (indices[ring].tail != cursors[ring].tail || made_anew(ring)) restart(cursors[ring]);
  }
  next_incarnation();
  return true;
}

/// Indices never go back. A ring that was made anew and has overtaken the old indices since shows by its first message.
bool RingReader::State::made_anew(std::uint32_t ring) {
  const Cursor& cursor = cursors[ring];
  const RingIndices& now = indices[ring];
  if (now.tail < cursor.tail || now.head < cursor.head) return true;
  if (now.head != 0 || now.tail == cursor.tail || cursor.birth == 0) return false;
  return event_time(ring, 0).value_or(cursor.birth) != cursor.birth;
}

/// Time of the first event at or behind a position where a message begins. Nothing if there is none, if it was
/// overwritten meanwhile, or if it cannot be read.
std::optional<std::uint64_t> RingReader::State::event_time(std::uint32_t ring, std::uint64_t position) {
  const std::uint64_t ring_words = map.layout().ring_words, tail = indices[ring].tail;
  // Padding has no time, but an event behind it.
  for (int messages = 0; messages < 2 && position < tail; ++messages) {
    std::array<std::uint64_t, 2> message{};
    const std::uint64_t until_wrap = ring_words - (position & (ring_words - 1));
    const std::uint64_t size = std::min({std::uint64_t{message.size()}, until_wrap, tail - position});
    std::uint64_t head = 0;
    if (!map.copy_words(ring, position, std::span(message).first(size)) || !map.load_head_after_copy(ring, head) ||
        head > position)
      return std::nullopt;
    const bool user = (message[0] & message::user_bit) != 0;
    if (user || (message[0] >> message::type_shift & 15) != message::padding) {
      if (size < message.size()) return std::nullopt;
      return message[1] + static_cast<std::uint64_t>(options.clock_offset_ns);
    }
    position += message[0] >> message::length_shift;
  }
  return std::nullopt;
}

/// Counts the words up to a position as gone; the next event that is handed out brings the news.
void RingReader::State::skip(Cursor& cursor, LossReason reason, std::uint64_t to) {
  const std::uint64_t words = to - cursor.position;
  if (reason == LossReason::overwritten) {
    cursor.past.lost += words;
    polled.lost_words += words;
  } else {
    cursor.past.corrupt += words;
  }
  cursor.pending[static_cast<std::size_t>(reason)] += words;
  cursor.position = to;
}

/// Counts as gone what should be in the file and will not come any more.
void RingReader::State::settle(Cursor& cursor) {
  if (cursor.position != cursor.tail || cursor.expected <= cursor.tail) return;
  cursor.tail = cursor.expected;
  skip(cursor, LossReason::overwritten, cursor.expected);
}

void RingReader::State::restart(Cursor& cursor) {
  skip(cursor, LossReason::overwritten, cursor.tail);
  cursor.past.written += cursor.tail;
  cursor.position = cursor.head = cursor.tail = cursor.birth = cursor.given_up = 0;
}

/// The next program with the same pid took the file over.
void RingReader::State::next_incarnation() {
  names.clear();
  settled_names = 0;
  new_names.clear();
  ++incarnation;
}

/// Reads names of user events that are new while they are certain to be the program's: what it wrote may be shown when
/// the next one has made the file anew. They are given out from the first slot on. A name is there in full before the
/// first event that bears it, but not at once: until then it is read again with each delivery.
void RingReader::State::keep_names() {
  std::vector<std::string> found;
  std::string name;
  const auto next = [&] { return static_cast<std::uint16_t>(settled_names + found.size()); };
  while (next() < user_event_slots && map.copy_name(next(), name) && !name.empty()) found.push_back(name);
  const std::uint32_t of_program = incarnation;
  if (found.empty() || truncated || !load() || truncated || incarnation != of_program) return;
  if (found.size() > new_names.size()) new_names.resize(found.size(), polls);
  for (std::size_t i = 0; i < found.size(); ++i) names[static_cast<std::uint16_t>(settled_names + i)] = found[i];
  while (!new_names.empty() && polls - new_names.front() > polls_until_settled) {
    new_names.pop_front();
    ++settled_names;
  }
}

/// Looks whether the file is still the one that was mapped.
void RingReader::State::recheck() {
  switch (map.refresh()) {
    case RingMap::Change::none:
      return;
    case RingMap::Change::remade:
      if (leave_alone()) return;
      truncated = false;
      faults = 0;
      for (Cursor& cursor : cursors) restart(cursor);
      next_incarnation();
      resize();
      return;
    case RingMap::Change::truncated:
      give_up();
      return;
  }
}

/// True if what was read of a domain may be the next program's. After its first event a ring that is made anew shows by
/// itself.
bool RingReader::State::is_foreign(const Cursor& cursor) {
  if (!options.is_latest || cursor.past.delivered != 0 || options.ended_ns != UINT64_MAX || is_copy) return false;
  // What RingWriter makes is a file of its own each time.
  if (options.is_latest() || producer()) return false;
  // What was seen of the indices is void, too.
  for (Cursor& other : cursors) {
    if (other.past.delivered == 0 && options.history == History::deliver) other = {};
    other.tail = other.position;
  }
  return leave_alone();
}

/// Leaves a file that was made anew to its new program, if that is not of interest.
bool RingReader::State::leave_alone() {
  if (!sealed && !options.one_program) return false;
  taken_over = true;
  give_up();
  return true;
}

void RingReader::State::give_up() {
  truncated = true;
  for (Cursor& cursor : cursors) {
    cursor.given_up += cursor.tail - cursor.position;
    skip(cursor, LossReason::overwritten, cursor.tail);
  }
}

/// Takes back what was given up with the file.
void RingReader::State::go_on_in(RingMap copy) {
  map = std::move(copy);
  for (Cursor& cursor : cursors) {
    const std::uint64_t words = std::exchange(cursor.given_up, 0);
    cursor.past.lost -= words;
    cursor.pending[static_cast<std::size_t>(LossReason::overwritten)] -= words;
    cursor.position -= words;
    cursor.expected = std::max(cursor.expected, cursor.tail);
    cursor.head = 0;
    cursor.tail = cursor.position;
  }
  // What was read of the file may be the next program's.
  for (auto& [id, name] : names) {
    if (std::string saved; map.copy_name(id, saved) && !saved.empty()) name = std::move(saved);
  }
  is_copy = true;
  truncated = taken_over = false;
  faults = 0;
}

}  // namespace rtev
