// SPDX-License-Identifier: MIT
// Whose events are in a chunk: each user has a share of the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "flight/kept_chunk.hpp"

namespace rtev::flight {

/// Finds the users of the events of a chunk, which must outlive it. One thread.
class EventUsers {
 public:
  explicit EventUsers(const Chunk& chunk);

  /// Nobody's (no_user) are the losses of buffers of the kernel, and switches between programs of several users.
  std::uint32_t of(const Event& event) const;
  std::uint32_t of_slot(std::uint32_t slot) const { return slot < slots_.size() ? slots_[slot] : no_user; }
  /// Of all events, if there is only one.
  std::optional<std::uint32_t> only_one() const;

 private:
  std::uint32_t of_process(ProcessIndex process) const;
  std::uint32_t of_threads(const Thread& one, const Thread& other) const;

  const Chunk& chunk_;
  std::vector<std::uint32_t> slots_;
  std::unordered_map<ProcessIndex, std::uint32_t> processes_;
  std::unordered_map<std::int32_t, std::uint32_t> pids_;
};

/// The memory that a chunk takes by user: its events, and their names.
std::vector<std::pair<std::uint32_t, std::size_t>> bytes_by_user(const Chunk& chunk);

/// A chunk in two: what is of a user, and the rest, which has the times, figures and stacks.
struct SplitChunk {
  Chunk of_user{}, rest{};
};
SplitChunk split(const Chunk& chunk, std::uint32_t user);

}  // namespace rtev::flight
