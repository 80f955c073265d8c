// SPDX-License-Identifier: MIT
// The last seconds of a stream, in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "flight/chunk_builder.hpp"
#include "flight/kept_chunk.hpp"
#include "flight/window_state.hpp"
#include "stream/period_figures.hpp"
#include "stream/sink.hpp"

namespace rtev::flight {

/// Whole chunks are dropped, oldest first. If several users need the memory, the oldest events of whoever takes most of
/// it go first, as long as that is more than an equal share: so what is kept of a user may begin later than the rest.
/// It begins at a checkpoint, so that its figures are exact. One thread.
class StreamHistory {
 public:
  struct Options {
    std::uint64_t keep_ns = 30'000'000'000;
    std::size_t max_bytes = std::size_t{64} << 20;  ///< goes before keep_ns
  };
  explicit StreamHistory(const Options& options);

  /// The stream begins.
  void begin(std::uint64_t time_ns) { begin_ns_ = open_begin_ns_ = time_ns_ = base_.time_ns = time_ns; }
  /// Copies the batch. May close chunks.
  void consume(const Batch& batch, const Registry& registry);
  /// All events before `time_ns` are consumed, except for late ones.
  void advance(std::uint64_t time_ns) { time_ns_ = std::max(time_ns_, time_ns); }
  /// True if the open chunk is full or old enough to be closed.
  bool wants_checkpoint() const;
  /// Closes the open chunk: see Sink::checkpoint().
  void checkpoint(const RunSummary& so_far, const Registry& registry);
  /// Drops chunks that are too old or too many. Those closed since the last call are in chunks() until then.
  void evict();

  /// Closed chunks, oldest first.
  const std::deque<std::shared_ptr<Chunk>>& chunks() const { return chunks_; }
  /// A chunk of chunks() for another thread: number 0 is the first one that was closed. Its memory is not reused.
  std::shared_ptr<const Chunk> share(std::uint64_t number);
  /// How many were closed before the first of chunks().
  std::uint64_t first_number() const { return first_number_; }
  /// Where the first of chunks() begins.
  std::uint64_t begin_ns() const { return begin_ns_; }
  /// All events before it are in chunks(), or were.
  std::uint64_t closed_ns() const { return open_begin_ns_; }
  std::uint64_t time_ns() const { return time_ns_; }
  std::size_t bytes() const { return bytes_ + builder_.bytes(); }

  /// What began before the events of users, by the number of the first chunk that has these. There is always one for
  /// first_number().
  std::map<std::uint64_t, Chunk> states() const;
  /// The figures of the run where the events of each user begin.
  PeriodFigures::Base base() const;

 private:
  void close(const Registry& registry, std::shared_ptr<const FiguresChange> figures);
  std::shared_ptr<const FiguresChange> change_since_last(const RunSummary& so_far, const Registry& registry);
  bool thin();
  void drop_front();
  void keep_memory_of(const std::shared_ptr<Chunk>& chunk);
  void count(const Chunk& chunk, bool is_kept);
  std::uint64_t first_of(std::uint32_t user) const;
  std::uint64_t end_of_group(std::uint64_t number) const;

  Options options_;
  std::uint64_t chunk_ns_;
  ChunkBuilder builder_;
  std::uint64_t time_ns_ = 0, open_begin_ns_ = 0, begin_ns_ = 0;
  std::uint64_t first_number_ = 0;
  std::deque<std::shared_ptr<Chunk>> chunks_;
  std::size_t bytes_ = 0;                                                  ///< of chunks_
  bool figures_missing_ = false;                                           ///< the last chunk was closed without them
  std::vector<std::pair<ProcessIndex, PeriodFigures::ProcessBase>> last_;  ///< of the last checkpoint, by index
  PeriodFigures::Base base_;  ///< of processes: where the events of their users begin
  WindowState state_;         ///< the same
  struct OfUser {
    std::size_t bytes = 0;
    std::uint64_t first = 0;  ///< number of the first chunk that may have its events
  };
  std::map<std::uint32_t, OfUser> users_;  ///< who have events in chunks_
};

}  // namespace rtev::flight
