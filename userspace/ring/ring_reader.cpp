// SPDX-License-Identifier: MIT
#include "rtev/ring_reader.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "ring/reader_state.hpp"

namespace rtev {

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
  // Not what RingWriter makes: see seal().
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
    state_->settle(state_->cursors[ring]);
    const std::size_t losses = chunk.put_losses(state_->cursors[ring], state_->source(ring), now_ns);
    if (losses > 0) call(consumer, chunk.batch(losses, {}));
  }
}

const Layout& RingReader::layout() const {
  return state_->map.layout();
}

std::optional<Producer> RingReader::producer() const {
  return state_->producer();
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
void RingReader::expect(std::uint16_t domain, std::uint64_t written) {
  if (domain >= state_->cursors.size()) return;
  std::uint64_t& expected = state_->cursors[domain].expected;
  expected = std::max(expected, written);
}
Result<void> RingReader::go_on_in(int fd) {
  auto copy = RingMap::open(UniqueFd(fd), state_->map.name());
  if (!copy) return std::unexpected(std::move(copy.error()));
  if (copy->layout().rings != state_->layout.rings || copy->layout().ring_words != state_->layout.ring_words) {
    return std::unexpected(Error{.what = "cannot go on in the copy of a ring",
                                 .subject = state_->map.name(),
                                 .why = "it is of another ring: their sizes differ"});
  }
  state_->go_on_in(std::move(*copy));
  return {};
}
void RingReader::seal(std::uint64_t ended_ns) {
  state_->sealed = true;
  // What RingWriter makes is a file of its own each time, and its times may be any clock's.
  if (!producer()) state_->options.ended_ns = std::min(state_->options.ended_ns, ended_ns);
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
bool RingReader::taken_over() const {
  return state_->taken_over;
}
std::uint32_t RingReader::incarnation() const {
  return state_->incarnation;
}

}  // namespace rtev
