// SPDX-License-Identifier: MIT
// The state of a RingReader: indices of its rings, owner of its file, changes of the file, and how its words are read.
#include "ring/reader_state.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "ring/decode.hpp"
#include "ring/sigbus_guard.hpp"

namespace rtev {
namespace {

/// Polls between two checks of the file's size. A truncated file is also noticed when reading it faults, and one that
/// was created anew by its header and indices.
constexpr std::uint32_t polls_between_checks = 256;

/// Polls after which a name is complete: a second, or more.
constexpr std::uint32_t polls_until_settled = 1024;

/// Names that are read beyond the known ones: a poll finds so many new names at the most.
constexpr std::uint32_t names_ahead = 16;

/// Faults in a row, with the file's size unchanged, after which the ring is abandoned: the disk fails.
constexpr std::uint32_t max_faults = 8;

/// Attempts to read the oldest event of a ring that is being written.
constexpr std::uint32_t max_attempts = 16;

/// Limits of what a program can write into all its rings. The rate of a CPU is twenty times what OCaml's runtime
/// reaches; so many words more may come at once.
constexpr std::uint64_t max_words_per_ns = 1, max_words_at_once = 1 << 20;

std::uint64_t max_words_in(std::uint64_t ns) {
  static const auto cpus = static_cast<std::uint64_t>(std::max(::sysconf(_SC_NPROCESSORS_CONF), 1L));
  return ns * max_words_per_ns * cpus + max_words_at_once;
}

/// Words of one domain, at whatever age: what the fastest program writes in 77 days.
constexpr std::uint64_t max_words_of_any = std::uint64_t{1} << 48;

/// Words are decoded in place if the program is at least this far from overtaking the reader: several times the words
/// that the fastest program writes while one `DecodeBuffer` is filled.
constexpr std::uint64_t safe_lead_words = 2 * decode_words;

}  // namespace

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

/// False if a ring's oldest event is older than the ring itself: the file is still a predecessor's. False, too, if it
/// is younger than the end of the owner: a successor has reused the file already.
bool RingReader::State::belongs_to_owner() {
  if (!load()) return false;
  bool has_events = false;
  for (std::uint32_t ring = 0; ring < std::min(map.layout().rings, telling_rings); ++ring) {
    const auto oldest = event_time(ring, indices[ring].head);
    if (!oldest) continue;
    if (*oldest < owner->created_ns || *oldest > owner->ended_ns) return false;
    has_events = true;
  }
  // A running program may be about to write its first event.
  return has_events || owner->ended_ns == UINT64_MAX;
}

/// True if a ring's oldest event is younger than the end of the owner: a successor reused the file. It may have written
/// so much since that the indices do not show it.
bool RingReader::State::has_successor_events() {
  if (owner->ended_ns == UINT64_MAX) return false;
  for (std::uint32_t ring = 0; ring < std::min(used, telling_rings); ++ring) {
    const RingIndices& now = indices[ring];
    for (std::uint32_t attempt = 0; attempt < max_attempts && now.head < now.tail; ++attempt) {
      if (const auto oldest = event_time(ring, now.head)) {
        if (*oldest > owner->ended_ns) return true;
        break;
      }
      // Overwritten meanwhile.
      if (!map.load_indices(std::span(indices).first(used))) return false;
    }
  }
  return false;
}

/// True if the file never had an event, and a successor may have begun to create it anew.
bool RingReader::State::may_be_emptied() const {
  const auto is_empty = [](const auto& ring) { return ring.tail == 0; };
  return std::ranges::all_of(indices, is_empty) && std::ranges::all_of(cursors, is_empty) && owner->is_latest_ring &&
         !owner->is_latest_ring() && !producer();
}

/// Decides which words from before the ring was opened are delivered.
void RingReader::State::begin() {
  loaded_ns = monotonic_ns();
  // The first poll handles a file that is truncated already.
  if (!load()) return;
  possible_words = max_words_of_life();
  for (std::uint32_t ring = 0; ring < map.layout().rings; ++ring) {
    Cursor& cursor = cursors[ring];
    const RingIndices& now = indices[ring];
    if (now.tail > max_words_of_any || believe(now.tail) < now.tail) {
      cursor.position = cursor.tail = cursor.invented = now.tail;
      cursor.head = std::min(now.head, now.tail);
      distrusted = true;
      continue;
    }
    const std::uint64_t head = std::min(now.head, now.tail);
    std::uint64_t start = head;
    // In other rings the first batch shows it.
    if (head == 0 && (ring < telling_rings || options.history == History::skip))
      cursor.first_time = event_time(ring, 0).value_or(0);
    if (options.history == History::skip) {
      const bool is_new = owner && cursor.first_time != 0 && cursor.first_time >= owner->deliver_since_ns;
      if (!is_new) start = now.tail;
    }
    cursor.head = head;
    cursor.tail = now.tail;
    if (owner && owner->began_traced) {
      skip(cursor, LossReason::overwritten, start);
    } else {
      cursor.position = start;
      cursor.totals.before_attach = start;
    }
  }
}

bool RingReader::State::begin_poll(bool all) {
  faulted = false;
  polled = {};
  names_needed = all || sealed;
  if (search.began) search = {};
  if (taken_over) return false;
  if (!are_indices_ready(all || sealed) || (sealed && load_indices(true) && !are_messages_ready())) {
    polled.complete = false;
    return false;
  }
  if (++polls % polls_between_checks == 0 || truncated || !map.same_header()) recheck();
  if (truncated || !load(all || sealed)) return false;
  // Domains may be in use whose indices were not looked at.
  polled.complete &= std::min(map.layout().rings, used + spare_rings) <= looked;
  const std::uint64_t last_loaded_ns = std::exchange(loaded_ns, monotonic_ns());
  possible_words = max_words_in(loaded_ns - last_loaded_ns);
  return true;
}

/// How many of these words can have been written, besides those that were believed of other domains.
std::uint64_t RingReader::State::believe(std::uint64_t words) {
  const std::uint64_t possible = std::min(words, possible_words);
  possible_words -= possible;
  return possible;
}

Polled RingReader::State::end_poll() {
  if (polled.delivered_words > 0 && names_needed) keep_names();
  if (faulted) {
    // Either the file was truncated, or its disk fails.
    ++faults;
    recheck();
    if (faults >= max_faults) abandon();
    if (!truncated) polled.complete = false;
  }
  return polled;
}

/// Loads the indices of all rings, or of those in use and some more. If one of these is in use, too, the next ones are
/// loaded, and so on.
bool RingReader::State::load_indices(bool all) {
  const std::uint32_t rings = std::min(map.layout().rings, looked);
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

/// Loads the newest indices; restarts rings that were created anew. False if there is nothing to read.
bool RingReader::State::load(bool all) {
  if (!load_indices(all)) {
    faulted = true;
    return false;
  }
  if (is_copy) {
    // The copy can have fewer words than the file had: the difference is lost, but nothing was created anew.
    for (std::uint32_t ring = 0; ring < used; ++ring)
      indices[ring].tail = std::max(indices[ring].tail, cursors[ring].position);
    return true;
  }
  bool anew = sealed && (has_successor_events() || may_be_emptied());
  for (std::uint32_t ring = 0; ring < used && !anew; ++ring) anew = created_anew(ring);
  if (!anew) return true;
  if (leave_alone()) return false;
  for (std::uint32_t ring = 0; ring < used; ++ring) {
    // Indices that did not move are still the old ones: the new program has not reset them yet.
    if (indices[ring].tail != cursors[ring].tail || created_anew(ring)) restart(cursors[ring]);
  }
  begin_incarnation();
  return true;
}

/// Copies the newest indices of a ring to its cursor and counts the words that its head has passed.
void RingReader::State::take_indices(std::uint32_t ring) {
  Cursor& cursor = cursors[ring];
  const RingIndices& now = indices[ring];
  const std::uint64_t new_words = now.tail - cursor.tail;
  cursor.added = new_words;
  cursor.tail = now.tail;
  // A head beyond the tail was loaded while the file was created anew: read_chunk() loads it again.
  if (now.head <= now.tail) cursor.head = now.head;
  if (cursor.position == now.tail) return;
  if (const std::uint64_t possible = believe(new_words); possible < new_words)
    return skip_invented(cursor, new_words - possible);
  const double fill = static_cast<double>(now.tail - cursor.position) / static_cast<double>(map.layout().ring_words);
  polled.fullest = std::clamp(fill, polled.fullest, 1.0);
  if (cursor.head > cursor.position) skip(cursor, LossReason::overwritten, cursor.head);
}

/// True if the words of a domain are read through the mapping. Its page tables, also those of pages that the program
/// frees again, are this process's memory: a 512th of what is mapped, and for small rings a little more. Small files
/// are charged at once: asking for each of thousands of domains takes time.
bool RingReader::State::may_map(Cursor& cursor) {
  if (distrusted) return false;
  constexpr std::uint64_t table_share = 512, least_bytes = 1024, small_file = 32 << 20;
  if (layout.mapped_bytes() <= small_file) {
    if (!is_mapped) is_mapped = may_use_memory(layout.mapped_bytes() / table_share + least_bytes);
    return *is_mapped;
  }
  if (!cursor.is_mapped)
    cursor.is_mapped = may_use_memory(map.layout().ring_words * sizeof(std::uint64_t) / table_share + least_bytes);
  return *cursor.is_mapped;
}

void RingReader::State::read(std::uint32_t ring, Call call, std::uint64_t& budget) {
  const Cursor& cursor = cursors[ring];
  while (cursor.position < cursor.tail && budget > 0) {
    const std::uint64_t position = cursor.position;
    if (!is_next_chunk_ready(cursor) && !look_ahead(ring)) return;
    if (!read_chunk(ring, call)) {
      faulted = true;
      return;
    }
    budget -= std::min(budget, cursor.position - position);
  }
}

/// Decodes words in the mapped file; false after a fault.
bool RingReader::State::decode_in_place(std::uint32_t ring, std::uint64_t size, DecodeBuffer& buffer,
                                        DecodeResult& decoded) {
  struct Task {
    std::span<const std::uint64_t> words;
    std::uint32_t source;
    std::int64_t clock_offset_ns;
    DecodeBuffer& buffer;
    DecodeResult& decoded;
  } task{map.words(ring, cursors[ring].position, size), source(ring), options.clock_offset_ns, buffer, decoded};
  return run_guarded(
      task.words.data(), task.words.size_bytes(),
      [](void* context) {
        Task& todo = *static_cast<Task*>(context);
        todo.decoded = todo.buffer.decode(todo.words, todo.source, todo.clock_offset_ns);
      },
      &task);
}

/// Checks and decodes the next piece of a ring. False after a fault.
bool RingReader::State::read_chunk(std::uint32_t ring, Call call) {
  Cursor& cursor = cursors[ring];
  DecodeBuffer& buffer = DecodeBuffer::of_this_thread();
  const std::uint64_t ring_words = map.layout().ring_words;
  const std::uint64_t to = cursor.tail;
  const std::uint64_t wanted = to - cursor.position;
  const std::uint64_t until_wrap = ring_words - (cursor.position & (ring_words - 1));
  const std::uint64_t size = std::min({wanted, until_wrap, static_cast<std::uint64_t>(decode_words)});
  // Decoding takes longer than copying. If the program overtakes the reader meanwhile, all words decoded in place are
  // void, but the rest of a copy is valid. So the words are copied first if the program is close behind.
  const std::uint64_t lead =
      cursor.head == 0 ? ring_words - std::min(wanted, ring_words) : cursor.position - cursor.head;
  const bool uses_mapping = may_map(cursor), in_place = uses_mapping && lead >= safe_lead_words;
  const auto copy = std::span(buffer.words).first(size);
  DecodeResult decoded;
  const bool is_read = in_place       ? decode_in_place(ring, size, buffer, decoded)
                       : uses_mapping ? map.copy_words(ring, cursor.position, copy)
                                      : map.read_words(ring, cursor.position, copy);
  std::uint64_t head = 0;
  if (!is_read || !map.load_head_after_copy(ring, head)) return false;
  faults = 0;
  if (!is_still_owners(cursor)) return false;

  // Words that the head has passed can be torn: they must not be checked before this.
  std::uint64_t overtaken = 0;
  if (head > cursor.position) {
    overtaken = std::min(head, to) - cursor.position;
    skip(cursor, LossReason::overwritten, cursor.position + overtaken);
    if (in_place || overtaken >= size) return true;
  } else if (to - head > ring_words) {
    // Impossible, since the head was loaded after the tail: the program invented the numbers.
    skip(cursor, LossReason::corrupt, to);
    return true;
  }
  cursor.head = std::max(cursor.head, std::min(head, to));

  const std::uint64_t kept = size - overtaken;
  if (!in_place)
    decoded = buffer.decode(std::span(buffer.words).subspan(overtaken, kept), source(ring), options.clock_offset_ns);
  if (cursor.position == 0 && decoded.events > 0) cursor.first_time = buffer.first_event()->time;
  cursor.position += decoded.consumed;
  cursor.totals.delivered += decoded.consumed;
  cursor.totals.events += decoded.events;
  polled.delivered_words += decoded.consumed;
  polled.events += decoded.events;
  names_needed |= decoded.has_user_events;
  if (decoded.events > 0) {
    const std::size_t losses = buffer.put_losses(cursor, source(ring), buffer.first_event()->time);
    cursor.last_time = buffer.first_event()[decoded.events - 1].time;
    call(buffer.batch(losses, decoded));
  }

  // A message may go on behind these words, but neither after the tail nor around the physical end.
  const bool may_continue = size < wanted && size < until_wrap;
  if (decoded.corrupt || (decoded.consumed < kept && !may_continue)) {
    // Resume where a message is known to begin: at the tail. The head was read already.
    skip(cursor, LossReason::corrupt, to);
  }
  return true;
}

/// Indices never go back. A ring that was created anew and has passed the old indices since shows by its first message.
bool RingReader::State::created_anew(std::uint32_t ring) {
  const Cursor& cursor = cursors[ring];
  const RingIndices& now = indices[ring];
  if (now.tail < cursor.tail || now.head < cursor.head) return true;
  if (now.head != 0 || now.tail == cursor.tail || cursor.first_time == 0) return false;
  return event_time(ring, 0).value_or(cursor.first_time) != cursor.first_time;
}

/// Time of the first event at or after a position where a message begins. Nothing if there is none, if it was
/// overwritten meanwhile, or if it cannot be read.
std::optional<std::uint64_t> RingReader::State::event_time(std::uint32_t ring, std::uint64_t position) {
  const std::uint64_t ring_words = map.layout().ring_words, tail = indices[ring].tail;
  // Padding has no time, but the event after it has.
  for (int messages = 0; messages < 2 && position < tail; ++messages) {
    std::array<std::uint64_t, 2> message{};
    const std::uint64_t until_wrap = ring_words - (position & (ring_words - 1));
    const std::uint64_t size = std::min({std::uint64_t{message.size()}, until_wrap, tail - position});
    const auto copy = std::span(message).first(size);
    const bool in_memory = position == 0 && first_messages_ready && may_map(cursors[ring]);
    std::uint64_t head = 0;
    if (!(in_memory ? map.copy_words(ring, position, copy) : map.read_words(ring, position, copy)) ||
        !map.load_head_after_copy(ring, head) || head > position)
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

/// Counts the words up to a position as lost; a loss event precedes the next event that is delivered.
void RingReader::State::skip(Cursor& cursor, LossReason reason, std::uint64_t to) {
  const std::uint64_t words = to - cursor.position;
  if (reason == LossReason::overwritten) {
    cursor.totals.lost += words;
    polled.lost_words += words;
  } else {
    cursor.totals.corrupt += words;
    polled.corrupt_words += words;
    distrusted = true;
  }
  cursor.pending[static_cast<std::size_t>(reason)] += words;
  cursor.position = to;
}

/// Skips to a tail that claims so many words more than can have been written, and does not count those.
void RingReader::State::skip_invented(Cursor& cursor, std::uint64_t words) {
  cursor.position += words;
  cursor.invented += words;
  skip(cursor, LossReason::corrupt, cursor.tail);
}

/// Words that a program can have written: since its ring was created, or since this host started.
std::uint64_t RingReader::State::max_words_of_life() const {
  if (!owner) return UINT64_MAX;
  const std::uint64_t now = monotonic_ns();
  return max_words_in(now - std::min(now, owner->created_ns));
}

/// Counts the words as lost that should be in the file and will not be written any more.
void RingReader::State::lose_expected(Cursor& cursor) {
  const std::uint64_t expected = std::min(cursor.expected, max_words_of_life());
  if (cursor.position != cursor.tail || expected <= cursor.tail) return;
  cursor.tail = expected;
  skip(cursor, LossReason::overwritten, expected);
}

void RingReader::State::restart(Cursor& cursor) {
  skip(cursor, LossReason::overwritten, cursor.tail);
  cursor.totals.written += cursor.tail - cursor.invented;
  cursor.position = cursor.head = cursor.tail = cursor.first_time = cursor.abandoned = cursor.invented = 0;
}

/// The next program with the same pid reuses the file.
void RingReader::State::begin_incarnation() {
  names.clear();
  settled_names = 0;
  new_names.clear();
  ++incarnation;
}

/// Reads new names of user events while they certainly belong to the program: its events may be shown after the next
/// program has reused the file. Programs fill the slots from 0 on. A name is complete before the first event that
/// refers to it, but is not written at once: until it has settled it is read again with user events.
void RingReader::State::keep_names() {
  if (names_full) return;
  std::vector<std::string> found;
  std::string name;
  const auto next = [&] { return static_cast<std::uint16_t>(settled_names + found.size()); };
  const auto until = std::min<std::size_t>(settled_names + new_names.size() + names_ahead, user_event_slots);
  search.began = true;
  while (next() < until && is_name_ready(next()) && map.copy_name(next(), name) && !name.empty()) found.push_back(name);
  const std::uint32_t incarnation_before = incarnation;
  if (found.empty() || truncated || !load() || truncated || incarnation != incarnation_before) return;
  if (found.size() > new_names.size()) new_names.resize(found.size(), polls);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto id = static_cast<std::uint16_t>(settled_names + i);
    names_full = !has_room_for_name(id);
    if (names_full) return;
    names.put(id, found[i]);
  }
  while (!new_names.empty() && polls - new_names.front() > polls_until_settled) {
    new_names.pop_front();
    ++settled_names;
  }
}

/// Empty if it is not known. The program may fill the slot later, so an empty one is read again, but not for each
/// event.
std::string_view RingReader::State::find_name(std::uint16_t id) {
  const std::string_view known = names.find(id);
  if (!known.empty() || truncated || id >= user_event_slots || search.unnamed[id]) return known;
  search.began = search.unnamed[id] = true;
  std::string name;
  if (!is_name_ready(id) || !map.copy_name(id, name) || name.empty() || !has_room_for_name(id)) return {};
  names.put(id, name);
  return names.find(id);
}

bool RingReader::State::has_room_for_name(std::uint16_t id) const {
  const std::size_t bytes = names.bytes_of_next(id);
  return bytes == 0 || may_use_memory(bytes);
}

bool RingReader::State::may_use_memory(std::size_t bytes) const {
  return !owner || !owner->may_use_memory || owner->may_use_memory(bytes);
}

/// Checks whether the file is still the one that was mapped.
void RingReader::State::recheck() {
  switch (map.refresh(owner ? RingMap::Recreated::stays_unmapped : RingMap::Recreated::is_mapped)) {
    case RingMap::Change::none:
      return;
    case RingMap::Change::recreated:
      if (leave_alone()) return;
      truncated = false;
      faults = 0;
      for (Cursor& cursor : cursors) restart(cursor);
      begin_incarnation();
      resize();
      return;
    case RingMap::Change::truncated:
      abandon();
      return;
  }
}

/// True if the words that were read of a domain can belong to the next program. After a domain's first event was
/// delivered, its time shows whether the ring was created anew.
bool RingReader::State::is_foreign(const Cursor& cursor) {
  if (!owner->is_latest_ring || cursor.totals.delivered != 0 || owner->ended_ns != UINT64_MAX || is_copy) return false;
  // RingWriter creates a new file each time.
  if (owner->is_latest_ring() || producer()) return false;
  // The indices can be of the next program, too.
  for (Cursor& other : cursors) {
    if (other.totals.delivered == 0 && options.history == History::deliver) other = {};
    other.tail = other.position;
  }
  return leave_alone();
}

/// False if the next program with the same pid has begun to reuse the file: words that were just read may be its own.
/// A file with many rings is not checked after each piece that was read: that would cost more than reading it.
bool RingReader::State::is_still_owners(const Cursor& cursor) {
  if (!owner) return true;
  constexpr std::uint32_t rings_per_piece = 64;
  unchecked_rings += rings_per_piece;
  if (unchecked_rings >= used) {
    unchecked_rings = 0;
    if (!load(sealed)) return false;
  }
  return !is_foreign(cursor);
}

/// Leaves a file that was created anew to its new program, if only the owner is of interest.
bool RingReader::State::leave_alone() {
  if (!owner) return false;
  taken_over = true;
  abandon();
  return true;
}

void RingReader::State::abandon() {
  truncated = true;
  for (Cursor& cursor : cursors) {
    cursor.abandoned += cursor.tail - cursor.position;
    skip(cursor, LossReason::overwritten, cursor.tail);
  }
}

/// Takes back the loss of the words that were abandoned with the file.
void RingReader::State::continue_in_copy(RingMap copy) {
  // An assignment would close the old file before it is unmapped.
  std::swap(map, copy);
  for (Cursor& cursor : cursors) {
    const std::uint64_t words = std::exchange(cursor.abandoned, 0);
    cursor.totals.lost -= words;
    cursor.pending[static_cast<std::size_t>(LossReason::overwritten)] -= words;
    cursor.position -= words;
    cursor.expected = std::max(cursor.expected, cursor.tail);
    cursor.head = 0;
    cursor.tail = cursor.position;
  }
  // Names that were read of the file may be the next program's.
  names.for_each([&](std::uint16_t id) {
    if (std::string saved; map.copy_name(id, saved) && !saved.empty()) names.put(id, saved);
  });
  is_copy = true;
  truncated = taken_over = false;
  faults = 0;
}

}  // namespace rtev
