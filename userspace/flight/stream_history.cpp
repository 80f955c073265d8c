// SPDX-License-Identifier: MIT
#include "flight/stream_history.hpp"

#include <algorithm>
#include <ranges>

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
  bytes_ += chunk.bytes();
  chunks_.push_back(std::make_shared<Chunk>(std::move(chunk)));
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
    now.emplace_back(
        index, PeriodFigures::ProcessBase{
                   .words = info.words, .missed = info.missed, .left_alone = info.left_alone, .ended = info.ended});
    if (!is_known || now.back().second != before->second) change->changed.push_back(now.back());
    if (is_known) ++before;
  }
  for (; before != last_.end(); ++before) change->gone.push_back(before->first);
  change->changed.shrink_to_fit();
  last_ = std::move(now);
  return change;
}

void StreamHistory::evict() {
  // A group of chunks ends with one that has figures.
  while (true) {
    const auto last = std::ranges::find_if(chunks_, [](const auto& chunk) { return chunk->figures != nullptr; });
    if (last == chunks_.end()) return;
    const bool is_old = (*last)->end_ns + options_.keep_ns <= time_ns_;
    if (!is_old && bytes() <= options_.max_bytes) return;
    for (auto left = last - chunks_.begin() + 1; left > 0; --left) drop_front();
  }
}

std::shared_ptr<const Chunk> StreamHistory::share(std::uint64_t number) {
  const auto& chunk = chunks_[static_cast<std::size_t>(number - first_number_)];
  chunk->is_shared = true;
  return chunk;
}

void StreamHistory::drop_front() {
  const std::shared_ptr<Chunk> chunk = std::move(chunks_.front());
  chunks_.pop_front();
  ++first_number_;
  bytes_ -= chunk->bytes();
  state_.add(*chunk);
  if (chunk->figures) apply(*chunk->figures);
  begin_ns_ = chunk->end_ns;
  // use_count() cannot decide this: it does not order the reads of the other thread before the reuse.
  if (!chunk->is_shared) builder_.reuse(std::move(*chunk));
}

void StreamHistory::apply(const FiguresChange& change) {
  base_.time_ns = change.time_ns;
  base_.so_far = change.so_far;
  base_.others = change.others;
  for (const auto& [index, process] : change.changed) base_.processes.insert_or_assign(index, process);
  for (const ProcessIndex index : change.gone) base_.processes.erase(index);
}

}  // namespace rtev::flight
