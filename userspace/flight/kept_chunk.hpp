// SPDX-License-Identifier: MIT
// A piece of the stream that is kept in memory, with all that its events refer to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rtev/event.hpp"
#include "stream/period_figures.hpp"
#include "stream/registry.hpp"

namespace rtev::flight {

/// ProcessInfo::user of what belongs to no process.
inline constexpr std::uint32_t no_user = UINT32_MAX;

/// The figures of a run at the end of a chunk, by what has changed since the chunk before that has them.
struct FiguresChange {
  std::uint64_t time_ns = 0;
  RunSummary so_far{};
  struct Process {
    ProcessIndex index = 0;
    std::uint32_t user = 0;
    PeriodFigures::ProcessBase base{};
  };
  std::vector<Process> changed{};
  std::vector<ProcessIndex> gone{};  ///< not in the registry any more
  Registry::Others others{};
};

/// Immutable once it is closed: threads may share it. A slot stands for one process in all of it.
struct Chunk {
  struct Ring {
    std::uint32_t slot = 0;
    ProcessIndex process = 0;
    std::uint32_t domains = 0;
    std::optional<Producer> producer{};
  };
  struct Name {
    std::uint32_t slot = 0;
    std::uint16_t id = 0;  ///< of the user event
    std::string text{};    ///< as the program made it
  };
  struct Frame {
    FrameIndex index = 0;
    StackFrame frame{};  ///< its texts are those of the run's StackTable, which neither moves nor removes them
  };
  struct Stack {
    StackIndex index = 0, caller = 0;
    FrameIndex frame = 0;
  };

  std::uint64_t begin_ns = 0, end_ns = 0;  ///< all events are in between, except for late ones
  std::vector<Event> events{};
  std::vector<std::byte> payloads{};
  std::vector<Ring> rings{};
  std::vector<std::pair<ProcessIndex, std::shared_ptr<const ProcessInfo>>> processes{};
  std::vector<Name> names{};
  std::vector<std::pair<std::int32_t, std::uint32_t>> pids{};  ///< of traced threads in switches, with their users
  std::vector<Frame> frames{};
  std::vector<Stack> stacks{};                     ///< callers first
  std::vector<StackIndex> unknown_stacks{};        ///< of samples: a later chunk may have them
  std::shared_ptr<const FiguresChange> figures{};  ///< null if it was closed between two checkpoints
  std::vector<std::pair<std::uint32_t, std::size_t>> bytes_of_users{};  ///< once it is closed, see bytes_by_user()
  std::array<std::uint64_t, event_kind_count> missing{};  ///< events by kind that were taken out to save memory
  bool is_state = false;   ///< its events are of before its time, see WindowState::as_chunk()
  bool is_shared = false;  ///< with another thread

  Batch batch() const { return {events, payloads}; }
  /// About as much memory as it takes.
  std::size_t bytes() const;
};

}  // namespace rtev::flight
