// SPDX-License-Identifier: MIT
#include "rtev/ring_reader.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ring/reader_state.hpp"

namespace rtev {

Accounting& Accounting::operator+=(const Accounting& other) {
  const auto add = [](std::uint64_t& sum, std::uint64_t more) {
    if (__builtin_add_overflow(sum, more, &sum)) sum = UINT64_MAX;
  };
  add(written, other.written);
  add(delivered, other.delivered);
  add(lost, other.lost);
  add(before_attach, other.before_attach);
  add(corrupt, other.corrupt);
  add(unread, other.unread);
  add(events, other.events);
  return *this;
}

Result<RingReader> RingReader::open(const std::filesystem::path& path, const Options& options) {
  // Neither follow a link nor wait for the other end of a pipe: the directory may be anyone's.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return errno_error(errno, "cannot open ring", path.string());
  return adopt(fd, path.string(), options);
}

Result<RingReader> RingReader::adopt(int fd, std::string name, const Options& options) {
  auto map = RingMap::open(UniqueFd(fd), std::move(name));
  if (!map) return std::unexpected(std::move(map.error()));
  RingReader reader(std::make_unique<State>(std::move(*map), options, std::nullopt));
  reader.state_->begin();
  return reader;
}

RingReader::RingReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
RingReader::RingReader(RingReader&&) noexcept = default;
RingReader& RingReader::operator=(RingReader&&) noexcept = default;
RingReader::~RingReader() = default;

Polled RingReader::poll_rings(bool all, Call call, std::uint64_t budget_words) {
  State& state = *state_;
  if (state.begin_poll(all)) {
    const std::uint32_t rings = state.used;
    for (std::uint32_t ring = 0; ring < rings; ++ring) state.take_indices(ring);
    const std::uint32_t first = state.next_ring;
    std::uint64_t budget = budget_words;
    for (std::uint32_t offset = 0; offset < rings && budget > 0 && !state.faulted; ++offset) {
      state.read((first + offset) % rings, call, budget);
      // The ring that used the budget up comes last in the next poll: it may be written faster than it is read.
      if (budget == 0) state.next_ring = (first + offset + 1) % rings;
    }
    for (std::uint32_t ring = 0; ring < rings; ++ring)
      state.polled.complete &= state.cursors[ring].position == state.cursors[ring].tail;
  }
  return state.end_poll();
}

Polled RingReader::poll_ring(std::uint16_t domain, Call call, std::uint64_t budget_words) {
  State& state = *state_;
  if (domain >= state.map.layout().rings) return {};
  if (state.begin_poll(true) && domain < state.map.layout().rings) {
    state.take_indices(domain);
    state.read(domain, call, budget_words);
    state.polled.complete = state.cursors[domain].position == state.cursors[domain].tail;
  }
  return state.end_poll();
}

void RingReader::finish_rings(Call call, std::uint64_t now_ns) {
  DecodeBuffer& buffer = DecodeBuffer::of_this_thread();
  for (std::uint32_t ring = 0; ring < state_->cursors.size(); ++ring) {
    state_->lose_expected(state_->cursors[ring]);
    const std::size_t losses = buffer.put_losses(state_->cursors[ring], state_->source(ring), now_ns);
    if (losses > 0) call(buffer.batch(losses, {}));
  }
}

RingReader::Layout RingReader::layout() const {
  const rtev::Layout& layout = state_->map.layout();
  return {.rings = layout.rings, .ring_words = layout.ring_words, .has_names = layout.names_offset != 0};
}

std::optional<Producer> RingReader::producer() const {
  return state_->producer();
}

std::uint32_t RingReader::active_domains() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      state_->cursors, [](const Cursor& cursor) { return cursor.tail != 0 || cursor.totals.written != 0; }));
}

Accounting RingReader::accounting(std::uint16_t domain) const {
  if (domain >= state_->cursors.size()) return {};
  const Cursor& cursor = state_->cursors[domain];
  Accounting result = cursor.totals;
  result.written += cursor.tail - cursor.invented;
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
  return state_->find_name(id);
}

bool RingReader::truncated() const {
  return state_->truncated;
}

std::uint32_t RingReader::incarnation() const {
  return state_->incarnation;
}

Result<RingReader> RingReaderAccess::adopt(UniqueFd fd, std::string name, const RingReader::Options& options,
                                           RingOwner owner) {
  auto map = RingMap::open(std::move(fd), std::move(name), owner.file);
  if (!map) return std::unexpected(std::move(map.error()));
  RingReader reader(std::make_unique<RingReader::State>(std::move(*map), options, std::move(owner)));
  RingReader::State& state = *reader.state_;
  if (!state.are_indices_ready(true) || (state.load_indices(true) && !state.are_messages_ready())) {
    return std::unexpected(Error{.what = "cannot read ring",
                                 .subject = state.map.name(),
                                 .why = "pages of its file are not in memory, or are being changed",
                                 .code = EAGAIN});
  }
  // RingWriter creates a new file each time, and its times may be any clock's.
  const bool has_times = state.owner->created_ns != 0 || state.owner->ended_ns != UINT64_MAX;
  if (has_times && !state.producer() && !state.belongs_to_owner()) {
    return std::unexpected(Error{.what = "cannot read ring",
                                 .subject = state.map.name(),
                                 .why = "it holds no events of its program, or those of another one",
                                 .code = EAGAIN});
  }
  state.begin();
  return reader;
}

void RingReaderAccess::unload_pages(const RingReader& reader) {
  reader.state_->map.unload_pages();
}

void RingReaderAccess::set_slot(RingReader& reader, std::uint32_t slot) {
  reader.state_->options.slot = slot;
}

void RingReaderAccess::seal(RingReader& reader, std::uint64_t ended_ns) {
  RingReader::State& state = *reader.state_;
  state.sealed = true;
  if (!state.owner) state.owner.emplace();
  // RingWriter creates a new file each time, and its times may be any clock's.
  if (!state.producer()) state.owner->ended_ns = std::min(state.owner->ended_ns, ended_ns);
}

void RingReaderAccess::expect_words(RingReader& reader, std::uint16_t domain, std::uint64_t written) {
  if (domain >= reader.state_->cursors.size()) return;
  Cursor& cursor = reader.state_->cursors[domain];
  cursor.expected = std::max(cursor.expected, written);
}

Result<void> RingReaderAccess::continue_in_copy(RingReader& reader, UniqueFd fd) {
  RingReader::State& state = *reader.state_;
  auto copy = RingMap::open(std::move(fd), state.map.name());
  if (!copy) return std::unexpected(std::move(copy.error()));
  if (copy->layout().rings != state.layout.rings || copy->layout().ring_words != state.layout.ring_words) {
    return std::unexpected(Error{.what = "cannot continue in the copy of a ring",
                                 .subject = state.map.name(),
                                 .why = "it is a copy of another ring: the sizes differ"});
  }
  state.continue_in_copy(std::move(*copy));
  return {};
}

bool RingReaderAccess::taken_over(const RingReader& reader) {
  return reader.state_->taken_over;
}

void RingReaderAccess::give_up(RingReader& reader) {
  RingReader::State& state = *reader.state_;
  // With those that no poll has seen.
  if (state.begin_poll(true)) {
    for (std::uint32_t ring = 0; ring < state.used; ++ring) state.take_indices(ring);
  }
  for (Cursor& cursor : state.cursors) state.skip(cursor, LossReason::overwritten, cursor.tail);
}

bool RingReaderAccess::is_being_changed(const RingReader& reader) {
  return reader.state_->map.is_being_changed();
}

std::uint32_t RingReaderAccess::used_domains(const RingReader& reader) {
  return reader.state_->used;
}

const Layout& RingReaderAccess::layout(const RingReader& reader) {
  return reader.state_->map.layout();
}

std::optional<std::uint64_t> RingReaderAccess::behind_since_ns(const RingReader& reader) {
  std::optional<std::uint64_t> earliest;
  // Files have rings for 128 domains, of which nearly all are unused.
  for (const Cursor& cursor : std::span(reader.state_->cursors).first(reader.state_->used)) {
    if (cursor.position != cursor.tail) earliest = std::min(earliest.value_or(cursor.last_time), cursor.last_time);
  }
  return earliest;
}

}  // namespace rtev
