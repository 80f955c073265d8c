// SPDX-License-Identifier: MIT
#include "rtev/ring_reader.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "ring/chunk.hpp"
#include "ring/decode.hpp"
#include "ring/ring_map.hpp"
#include "ring/sigbus_guard.hpp"

namespace rtev {
namespace {

/// Polls between two looks at the file's size. A shrunk file is also noticed when reading it faults, and one that was
/// made anew by its header and indices.
constexpr std::uint32_t polls_between_refreshes = 256;

/// Rings looked at, by poll_used(), beyond those that were ever written to.
constexpr std::uint32_t spare_rings = 8;

/// Faults in a row, with the file's size unchanged, after which the ring is given up: the disk fails.
constexpr std::uint32_t most_faults = 8;

/// How far the program must be from overtaking the reader for words to be decoded where they lie: several times what
/// the fastest program writes while a chunk is decoded.
constexpr std::uint64_t safe_lead_words = 2 * chunk_words;

}  // namespace

Accounting& Accounting::operator+=(const Accounting& other) {
  written += other.written;
  delivered += other.delivered;
  lost += other.lost;
  before_attach += other.before_attach;
  corrupt += other.corrupt;
  unread += other.unread;
  events += other.events;
  return *this;
}

struct RingReader::State {
  RingMap map;
  Options options;
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
  std::unordered_map<std::uint16_t, std::string> names;

  State(RingMap opened, const Options& given) : map(std::move(opened)), options(given) { resize(); }

  void resize() {
    cursors.resize(std::max<std::size_t>(cursors.size(), map.layout().rings));
    indices.assign(map.layout().rings, {});
    used = std::min(used, map.layout().rings);
  }

  std::uint32_t source(std::uint32_t ring) const {
    return Source{options.slot, static_cast<std::uint16_t>(ring)}.pack();
  }

  bool belongs_to_program();
  void begin();
  bool begin_poll(bool all);
  Polled end_poll();
  bool load(bool all = true);
  bool load_indices(bool all);
  bool made_anew(std::uint32_t ring);
  std::optional<std::uint64_t> event_time(std::uint32_t ring, std::uint64_t position);
  void skip(Cursor& cursor, LossReason reason, std::uint64_t to);
  void restart(Cursor& cursor);
  void next_incarnation();
  void recheck();
  void give_up();
  void take(std::uint32_t ring);
  void read(std::uint32_t ring, Call call, void* consumer, std::uint64_t& budget);
  bool decode_in_place(std::uint32_t ring, std::uint64_t size, Chunk& chunk, DecodeResult& decoded);
  bool read_chunk(std::uint32_t ring, Call call, void* consumer);
};

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
  bool anew = false;
  for (std::uint32_t ring = 0; ring < used && !anew; ++ring) anew = made_anew(ring);
  if (!anew) return true;
  if (sealed) {
    give_up();
    return false;
  }
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

void RingReader::State::restart(Cursor& cursor) {
  skip(cursor, LossReason::overwritten, cursor.tail);
  cursor.past.written += cursor.tail;
  cursor.position = cursor.head = cursor.tail = cursor.birth = 0;
}

/// The next program with the same pid took the file over.
void RingReader::State::next_incarnation() {
  names.clear();
  ++incarnation;
}

/// Looks whether the file is still the one that was mapped.
void RingReader::State::recheck() {
  switch (map.refresh()) {
    case RingMap::Change::none:
      return;
    case RingMap::Change::remade:
      if (sealed) return give_up();
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

void RingReader::State::give_up() {
  truncated = true;
  for (Cursor& cursor : cursors) skip(cursor, LossReason::overwritten, cursor.tail);
}

/// Takes over the newest indices of a ring and counts what its head has passed.
void RingReader::State::take(std::uint32_t ring) {
  Cursor& cursor = cursors[ring];
  const RingIndices& now = indices[ring];
  cursor.tail = now.tail;
  // A head beyond the tail was loaded while the file was made anew: read_chunk() loads it again.
  if (now.head <= now.tail) cursor.head = now.head;
  if (cursor.position == now.tail) return;
  const double fill = static_cast<double>(now.tail - cursor.position) / static_cast<double>(map.layout().ring_words);
  polled.fullest = std::clamp(fill, polled.fullest, 1.0);
  if (cursor.head > cursor.position) skip(cursor, LossReason::overwritten, cursor.head);
}

void RingReader::State::read(std::uint32_t ring, Call call, void* consumer, std::uint64_t& budget) {
  const Cursor& cursor = cursors[ring];
  while (cursor.position < cursor.tail && budget > 0) {
    const std::uint64_t position = cursor.position;
    if (!read_chunk(ring, call, consumer)) {
      faulted = true;
      return;
    }
    budget -= std::min(budget, cursor.position - position);
  }
}

/// Decodes words where they lie in the file; false after a fault.
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
bool RingReader::State::read_chunk(std::uint32_t ring, Call call, void* consumer) {
  Cursor& cursor = cursors[ring];
  Chunk& chunk = Chunk::of_this_thread();
  const std::uint64_t ring_words = map.layout().ring_words;
  const std::uint64_t to = cursor.tail;
  const std::uint64_t wanted = to - cursor.position;
  const std::uint64_t until_wrap = ring_words - (cursor.position & (ring_words - 1));
  const std::uint64_t size = std::min({wanted, until_wrap, static_cast<std::uint64_t>(chunk_words)});
  // Decoding takes longer than copying, and what was decoded in place is void if the program overtook it meanwhile,
  // while of a copy the rest can be kept. So where the program is close behind, the words are copied first.
  const std::uint64_t lead =
      cursor.head == 0 ? ring_words - std::min(wanted, ring_words) : cursor.position - cursor.head;
  const bool in_place = lead >= safe_lead_words;
  DecodeResult decoded;
  std::uint64_t head = 0;
  if (!(in_place ? decode_in_place(ring, size, chunk, decoded)
                 : map.copy_words(ring, cursor.position, std::span(chunk.words).first(size))) ||
      !map.load_head_after_copy(ring, head))
    return false;
  faults = 0;
  // The next program with the same pid may have begun to make the file anew: its events are not this one's.
  if (sealed && !load()) return false;

  // Only now may the words be judged: what the head has passed may be torn.
  std::uint64_t overtaken = 0;
  if (head > cursor.position) {
    overtaken = std::min(head, to) - cursor.position;
    skip(cursor, LossReason::overwritten, cursor.position + overtaken);
    if (in_place || overtaken >= size) return true;
  } else if (to - head > ring_words) {
    // Impossible where the head was loaded after the tail: the numbers are made up.
    skip(cursor, LossReason::corrupt, to);
    return true;
  }
  cursor.head = std::max(cursor.head, std::min(head, to));

  const std::uint64_t kept = size - overtaken;
  if (!in_place)
    decoded = chunk.decode(std::span(chunk.words).subspan(overtaken, kept), source(ring), options.clock_offset_ns);
  if (cursor.position == 0 && decoded.events > 0) cursor.birth = chunk.first_event()->time;
  cursor.position += decoded.consumed;
  cursor.past.delivered += decoded.consumed;
  cursor.past.events += decoded.events;
  polled.delivered_words += decoded.consumed;
  polled.events += decoded.events;
  if (decoded.events > 0) {
    const std::size_t losses = chunk.put_losses(cursor, source(ring), chunk.first_event()->time);
    cursor.last_time = chunk.first_event()[decoded.events - 1].time;
    call(consumer, chunk.batch(losses, decoded));
  }

  // A message may continue behind the chunk, but neither behind the tail nor around the physical end.
  const bool may_continue = size < wanted && size < until_wrap;
  if (decoded.corrupt || (decoded.consumed < kept && !may_continue)) {
    // Go on where a message is known to begin. The head is such a place, but it is behind us; so is the tail.
    skip(cursor, LossReason::corrupt, to);
  }
  return true;
}

Result<RingReader> RingReader::open(const std::filesystem::path& path, const Options& options) {
  // Not following a link and not waiting for a pipe's other end: the directory may be anyone's.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return errno_error(errno, "cannot open ring", path.string());
  return adopt(fd, path.string(), options);
}

Result<RingReader> RingReader::adopt(int fd, std::string name, const Options& options) {
  auto map = RingMap::open(UniqueFd(fd), std::move(name));
  if (!map) return std::unexpected(std::move(map.error()));
  RingReader reader(std::make_unique<State>(std::move(*map), options));
  State& state = *reader.state_;
  // What RingWriter makes is a file of its own each time, and its times may be any clock's.
  const bool could_be_anothers = (options.made_ns != 0 || options.ended_ns != UINT64_MAX) && !reader.producer();
  if (could_be_anothers && !state.belongs_to_program()) {
    return std::unexpected(Error{.what = "cannot read ring",
                                 .subject = state.map.name(),
                                 .why = "it holds no events of its program, or those of another one",
                                 .code = EAGAIN});
  }
  state.begin();
  return reader;
}

RingReader::RingReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
RingReader::RingReader(RingReader&&) noexcept = default;
RingReader& RingReader::operator=(RingReader&&) noexcept = default;
RingReader::~RingReader() = default;

Polled RingReader::poll_rings(bool all, Call call, void* consumer, std::uint64_t budget_words) {
  State& state = *state_;
  if (state.begin_poll(all)) {
    const std::uint32_t rings = state.used;
    for (std::uint32_t ring = 0; ring < rings; ++ring) state.take(ring);
    const std::uint32_t first = state.next_ring;
    std::uint64_t budget = budget_words;
    for (std::uint32_t turn = 0; turn < rings && budget > 0 && !state.faulted; ++turn) {
      state.read((first + turn) % rings, call, consumer, budget);
      // The ring that used the budget up comes last the next time: it may be written faster than it is read.
      if (budget == 0) state.next_ring = (first + turn + 1) % rings;
    }
    for (std::uint32_t ring = 0; ring < rings; ++ring)
      state.polled.complete &= state.cursors[ring].position == state.cursors[ring].tail;
  }
  return state.end_poll();
}

Polled RingReader::poll_ring(std::uint16_t domain, Call call, void* consumer, std::uint64_t budget_words) {
  State& state = *state_;
  if (domain >= state.map.layout().rings) return {};
  if (state.begin_poll(true) && domain < state.map.layout().rings) {
    state.take(domain);
    state.read(domain, call, consumer, budget_words);
    state.polled.complete = state.cursors[domain].position == state.cursors[domain].tail;
  }
  return state.end_poll();
}

void RingReader::finish_rings(Call call, void* consumer, std::uint64_t now_ns) {
  Chunk& chunk = Chunk::of_this_thread();
  for (std::uint32_t ring = 0; ring < state_->cursors.size(); ++ring) {
    const std::size_t losses = chunk.put_losses(state_->cursors[ring], state_->source(ring), now_ns);
    if (losses > 0) call(consumer, chunk.batch(losses, {}));
  }
}

const Layout& RingReader::layout() const {
  return state_->map.layout();
}

std::optional<Producer> RingReader::producer() const {
  const auto mark = state_->map.read_mark();
  if (!mark || mark->magic != ProducerMark::magic_value || mark->version != ProducerMark::current_version ||
      mark->family > static_cast<std::uint32_t>(Family::since_5_3))
    return std::nullopt;
  const std::string name(mark->producer, ::strnlen(mark->producer, sizeof mark->producer));
  const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (name.empty() || name.size() == sizeof mark->producer || !std::ranges::all_of(name, is_printable))
    return std::nullopt;
  return Producer{.name = name, .family = static_cast<Family>(mark->family)};
}

std::uint32_t RingReader::active_domains() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      state_->cursors, [](const Cursor& cursor) { return cursor.tail != 0 || cursor.past.written != 0; }));
}

Accounting RingReader::accounting(std::uint16_t domain) const {
  if (domain >= state_->cursors.size()) return {};
  const Cursor& cursor = state_->cursors[domain];
  Accounting result = cursor.past;
  result.written += cursor.tail;
  result.unread = cursor.tail - cursor.position;
  return result;
}

Accounting RingReader::accounting() const {
  Accounting sum;
  for (std::uint32_t ring = 0; ring < state_->cursors.size(); ++ring)
    sum += accounting(static_cast<std::uint16_t>(ring));
  return sum;
}

std::string_view RingReader::user_event_name(std::uint16_t id) const {
  std::string& name = state_->names[id];
  // A name is written after the ring starts, so an empty slot is looked at again.
  if (name.empty() && !state_->truncated) state_->map.copy_name(id, name);
  return name;
}

void RingReader::assign_slot(std::uint32_t slot) {
  state_->options.slot = slot;
}
void RingReader::seal() {
  state_->sealed = true;
}

std::optional<std::uint64_t> RingReader::behind_since_ns() const {
  std::optional<std::uint64_t> earliest;
  for (const Cursor& cursor : state_->cursors) {
    if (cursor.position != cursor.tail) earliest = std::min(earliest.value_or(cursor.last_time), cursor.last_time);
  }
  return earliest;
}

bool RingReader::truncated() const {
  return state_->truncated;
}
std::uint32_t RingReader::incarnation() const {
  return state_->incarnation;
}
std::pair<std::uint64_t, std::uint64_t> RingReader::file_id() const {
  return {state_->map.device(), state_->map.inode()};
}

}  // namespace rtev
