// SPDX-License-Identifier: MIT
// Reads rings chunk by chunk: the hot path of the reader.
#include "ring/decode.hpp"
#include "ring/reader_state.hpp"
#include "ring/sigbus_guard.hpp"

namespace rtev {
namespace {

/// Words are decoded in place if the program is at least this far from overtaking the reader: several times the words
/// that the fastest program writes while a chunk is decoded.
constexpr std::uint64_t safe_lead_words = 2 * chunk_words;

}  // namespace

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
bool RingReader::State::decode_in_place(std::uint32_t ring, std::uint64_t size, Chunk& chunk, DecodeResult& decoded) {
  struct Task {
    std::span<const std::uint64_t> words;
    std::uint32_t source;
    std::int64_t clock_offset_ns;
    Chunk& chunk;
    DecodeResult& decoded;
  } task{map.words(ring, cursors[ring].position, size), source(ring), options.clock_offset_ns, chunk, decoded};
  return run_guarded(
      task.words.data(), task.words.size_bytes(),
      [](void* context) {
        Task& todo = *static_cast<Task*>(context);
        todo.decoded = todo.chunk.decode(todo.words, todo.source, todo.clock_offset_ns);
      },
      &task);
}

/// Checks and decodes the next piece of a ring. False after a fault.
bool RingReader::State::read_chunk(std::uint32_t ring, Call call) {
  Cursor& cursor = cursors[ring];
  Chunk& chunk = Chunk::of_this_thread();
  const std::uint64_t ring_words = map.layout().ring_words;
  const std::uint64_t to = cursor.tail;
  const std::uint64_t wanted = to - cursor.position;
  const std::uint64_t until_wrap = ring_words - (cursor.position & (ring_words - 1));
  const std::uint64_t size = std::min({wanted, until_wrap, static_cast<std::uint64_t>(chunk_words)});
  // Decoding takes longer than copying. If the program overtakes the reader meanwhile, all words decoded in place are
  // void, but the rest of a copy is valid. So the words are copied first if the program is close behind.
  const std::uint64_t lead =
      cursor.head == 0 ? ring_words - std::min(wanted, ring_words) : cursor.position - cursor.head;
  const bool uses_mapping = may_map(cursor), in_place = uses_mapping && lead >= safe_lead_words;
  const auto copy = std::span(chunk.words).first(size);
  DecodeResult decoded;
  const bool is_read = in_place       ? decode_in_place(ring, size, chunk, decoded)
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
    decoded = chunk.decode(std::span(chunk.words).subspan(overtaken, kept), source(ring), options.clock_offset_ns);
  if (cursor.position == 0 && decoded.events > 0) cursor.first_time = chunk.first_event()->time;
  cursor.position += decoded.consumed;
  cursor.totals.delivered += decoded.consumed;
  cursor.totals.events += decoded.events;
  polled.delivered_words += decoded.consumed;
  polled.events += decoded.events;
  names_needed |= decoded.has_user_events;
  if (decoded.events > 0) {
    const std::size_t losses = chunk.put_losses(cursor, source(ring), chunk.first_event()->time);
    cursor.last_time = chunk.first_event()[decoded.events - 1].time;
    call(chunk.batch(losses, decoded));
  }

  // A message may continue after the chunk, but neither after the tail nor around the physical end.
  const bool may_continue = size < wanted && size < until_wrap;
  if (decoded.corrupt || (decoded.consumed < kept && !may_continue)) {
    // Resume where a message is known to begin: at the tail. The head was read already.
    skip(cursor, LossReason::corrupt, to);
  }
  return true;
}

}  // namespace rtev
