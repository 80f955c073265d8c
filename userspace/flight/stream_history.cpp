// SPDX-License-Identifier: MIT
#include "flight/stream_history.hpp"

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "flight/event_users.hpp"

namespace rtev::flight {
namespace {

/// Of what is kept: how exactly its size and its age follow the options.
constexpr std::size_t parts_of_size = 32, parts_of_age = 16;
constexpr std::size_t min_chunk_bytes = std::size_t{64} << 10, max_chunk_bytes = std::size_t{4} << 20;

std::size_t chunk_bytes(std::size_t max_bytes) {
  return std::clamp(max_bytes / parts_of_size, min_chunk_bytes, max_chunk_bytes);
}

}  // namespace

// Chunks close at three quarters of their size, at a checkpoint, which needs some time; without one when they are full.
StreamHistory::StreamHistory(const Options& options)
    : options_(options), chunk_ns_(options.keep_ns / parts_of_age), builder_(chunk_bytes(options.max_bytes)) {}

void StreamHistory::consume(const Batch& batch, const Registry& registry) {
  auto events = batch.events();
  while (!events.empty()) {
    events = events.subspan(builder_.add(Batch(events, batch.payloads()), registry));
    if (!events.empty() || builder_.is_full()) close(registry, nullptr);
  }
}

bool StreamHistory::wants_checkpoint() const {
  return figures_missing_ || 4 * builder_.bytes() > 3 * chunk_bytes(options_.max_bytes) ||
         time_ns_ - std::min(time_ns_, open_begin_ns_) >= chunk_ns_;
}

void StreamHistory::checkpoint(const RunSummary& so_far, const Registry& registry) {
  close(registry, change_since_last(so_far, registry));
  open_begin_ns_ = time_ns_;
}

void StreamHistory::close(const Registry& registry, std::shared_ptr<const FiguresChange> figures) {
  Chunk chunk = builder_.close(&registry);
  chunk.begin_ns = open_begin_ns_;
  chunk.end_ns = time_ns_;
  figures_missing_ = figures == nullptr;
  chunk.figures = std::move(figures);
  chunk.bytes_of_users = bytes_by_user(chunk);
  count(chunk, true);
  chunks_.push_back(std::make_shared<Chunk>(std::move(chunk)));
}

/// As a chunk that comes, or goes.
void StreamHistory::count(const Chunk& chunk, bool is_kept) {
  const auto add = [&](std::size_t& sum, std::size_t bytes) { sum = is_kept ? sum + bytes : sum - bytes; };
  add(bytes_, chunk.bytes());
  for (const auto& [user, bytes] : chunk.bytes_of_users) {
    OfUser& of = users_[user];
    add(of.bytes, bytes);
    if (of.bytes == 0 && of.first <= first_number_) users_.erase(user);
  }
}

std::shared_ptr<const FiguresChange> StreamHistory::change_since_last(const RunSummary& so_far,
                                                                      const Registry& registry) {
  auto change = std::make_shared<FiguresChange>();
  change->time_ns = time_ns_;
  change->so_far = so_far;
  change->others = registry.others();
  std::vector<std::pair<ProcessIndex, PeriodFigures::ProcessBase>> now;
  now.reserve(last_.size() + 16);
  auto before = last_.begin();
  for (const auto& [index, info] : registry.indexed_processes()) {
    for (; before != last_.end() && before->first < index; ++before) change->gone.push_back(before->first);
    const bool is_known = before != last_.end() && before->first == index;
    const auto& [at, base] = now.emplace_back(
        index, PeriodFigures::ProcessBase{
                   .words = info.words, .missed = info.missed, .left_alone = info.left_alone, .ended = info.ended});
    if (!is_known || base != before->second)
      change->changed.push_back({.index = index, .user = info.user, .base = base});
    if (is_known) ++before;
  }
  for (; before != last_.end(); ++before) change->gone.push_back(before->first);
  change->changed.shrink_to_fit();
  last_ = std::move(now);
  return change;
}

/// A group of chunks ends with one that has figures. Returns the number after it, or of `number` if it is not complete.
std::uint64_t StreamHistory::end_of_group(std::uint64_t number) const {
  const auto begin = chunks_.begin() + static_cast<std::ptrdiff_t>(number - first_number_);
  const auto last = std::find_if(begin, chunks_.end(), [](const auto& chunk) { return chunk->figures != nullptr; });
  return last == chunks_.end() ? number : number + static_cast<std::uint64_t>(last - begin) + 1;
}

void StreamHistory::evict() {
  while (true) {
    const std::uint64_t end = end_of_group(first_number_);
    if (end == first_number_) return;
    const bool is_old = chunks_[end - 1 - first_number_]->end_ns + options_.keep_ns <= time_ns_;
    if (!is_old && bytes() <= options_.max_bytes) return;
    if (!is_old && thin()) continue;
    while (first_number_ < end) drop_front();
  }
}

/// Takes out the oldest group of chunks of the user who has most, if that is more than an equal share. False if all
/// that is oldest may go with it, or has to.
bool StreamHistory::thin() {
  const auto most = std::ranges::max_element(users_, {}, [](const auto& user) { return user.second.bytes; });
  if (most == users_.end() || most->first == no_user) return false;
  const auto [user, of] = *most;
  const auto has = [](const auto& one) { return one.second.bytes > 0; };
  const auto users = static_cast<std::size_t>(std::ranges::count_if(users_, has));
  if (of.bytes <= options_.max_bytes / users) return false;
  const std::uint64_t begin = first_of(user), end = end_of_group(begin);
  if (end == begin) return false;
  const auto is_only = [&](std::uint64_t number) {
    const auto& bytes = chunks_[number - first_number_]->bytes_of_users;
    return std::ranges::all_of(bytes, [user = user](const auto& one) { return one.first == user; });
  };
  if (begin == first_number_ && std::ranges::all_of(std::views::iota(begin, end), is_only)) return false;
  for (std::uint64_t number = begin; number < end; ++number) {
    std::shared_ptr<Chunk>& chunk = chunks_[number - first_number_];
    if (std::ranges::find(chunk->bytes_of_users, user, [](const auto& one) { return one.first; }) ==
        chunk->bytes_of_users.end())
      continue;
    SplitChunk parts = split(*chunk, user);
    state_.add(parts.of_user);
    count(*chunk, false);
    count(parts.rest, true);
    const auto before = std::exchange(chunk, std::make_shared<Chunk>(std::move(parts.rest)));
    keep_memory_of(before);
  }
  users_[user].first = end;
  for (const auto& [index, owner, base] : chunks_[end - 1 - first_number_]->figures->changed)
    if (owner == user) base_.processes.insert_or_assign(index, base);
  return true;
}

/// Number of the first chunk that may have events of a user.
std::uint64_t StreamHistory::first_of(std::uint32_t user) const {
  const auto known = users_.find(user);
  return known != users_.end() ? std::max(known->second.first, first_number_) : first_number_;
}

std::shared_ptr<const Chunk> StreamHistory::share(std::uint64_t number) {
  const auto& chunk = chunks_[static_cast<std::size_t>(number - first_number_)];
  chunk->is_shared = true;
  return chunk;
}

void StreamHistory::drop_front() {
  const std::shared_ptr<Chunk> chunk = std::move(chunks_.front());
  chunks_.pop_front();
  state_.add(*chunk);
  if (chunk->figures) {
    const FiguresChange& change = *chunk->figures;
    base_.time_ns = change.time_ns;
    base_.so_far = change.so_far;
    base_.others = change.others;
    for (const auto& [index, user, base] : change.changed)
      if (first_of(user) == first_number_) base_.processes.insert_or_assign(index, base);
    for (const ProcessIndex index : change.gone) base_.processes.erase(index);
  }
  ++first_number_;
  count(*chunk, false);
  begin_ns_ = chunk->end_ns;
  keep_memory_of(chunk);
}

/// Of a chunk that is not kept.
void StreamHistory::keep_memory_of(const std::shared_ptr<Chunk>& chunk) {
  // use_count() cannot decide this: it does not order the reads of the other thread before the reuse.
  if (!chunk->is_shared) builder_.reuse(std::move(*chunk));
}

std::map<std::uint64_t, Chunk> StreamHistory::states() const {
  std::set<std::uint64_t> numbers{first_number_};
  for (const auto& [user, of] : users_) numbers.insert(first_of(user));
  std::map<std::uint64_t, Chunk> states;
  for (const std::uint64_t number : numbers) {
    const std::size_t at = number - first_number_;
    const std::uint64_t begin_ns = at == 0 ? begin_ns_ : chunks_[at - 1]->end_ns;
    states.emplace(number, state_.as_chunk(begin_ns, [&](std::uint32_t user) { return first_of(user) == number; }));
  }
  return states;
}

PeriodFigures::Base StreamHistory::base() const {
  PeriodFigures::Base base = base_;
  for (const auto& chunk : chunks_)
    for (std::size_t kind = 0; kind < event_kind_count; ++kind) base.so_far.events[kind] += chunk->missing[kind];
  return base;
}

}  // namespace rtev::flight
