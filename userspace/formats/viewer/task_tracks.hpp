// SPDX-License-Identifier: MIT
// The tracks of tasks: one for each fiber, with what it did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/tasks/task_tracker.hpp"
#include "formats/viewer/trace_writer.hpp"
#include "formats/viewer/track_table.hpp"

namespace rtev {

/// Turns user events into spans on tracks of tasks. A span is written when it is over, so that nothing is shown that
/// a loss makes uncertain. Memory and the number of tracks are bounded. One thread.
class TaskTracks final : private TaskObserver {
 public:
  /// Tasks of one process that get a track, whether they live at the same time or not; further ones are only counted.
  static constexpr std::size_t max_tracks = 1000;

  TaskTracks(TraceWriter& writer, TrackTable& tracks) : writer_(writer), tracks_(tracks) {}

  /// After the process of the event was named.
  void add(const EventContext& context);
  void finish(std::uint64_t end_ns, const Registry& registry);

 private:
  using RowKey = std::tuple<ProcessIndex, TaskLibrary, std::int64_t>;
  static constexpr std::size_t max_arrows = 64;  ///< of tasks that one creates while it runs

  struct Row {
    Track track{};
    std::vector<RowKey> created{};  ///< since it runs
    std::uint64_t flow_in = 0;      ///< an arrow that has left its creator
    bool begun = false;             ///< a span was written
  };
  struct Process {
    std::size_t tracks = 0, left_out = 0;
  };

  void on_task_created(ProcessIndex process, const Task& task) override;
  void on_task_interval(ProcessIndex process, const Task& task, const TaskInterval& interval) override;
  void on_task_end(ProcessIndex process, const Task& task, TaskEnd how, std::string_view error,
                   std::uint64_t time_ns) override;
  void on_tasks_gone(ProcessIndex process, std::uint64_t time_ns) override;

  /// Null if there are too many.
  Row* row_of(ProcessIndex process, const Task& task);

  TraceWriter& writer_;
  TrackTable& tracks_;
  TaskTracker tracker_{this};
  std::map<RowKey, Row> rows_;
  std::map<ProcessIndex, Process> processes_;
  const Registry* registry_ = nullptr;  ///< of the event in hand
  std::int32_t next_tid_ = first_task_tid;
  std::uint64_t next_flow_ = first_task_flow;
  std::vector<std::uint64_t> flows_out_;  ///< here to keep its memory, as the texts are
  std::string name_, context_;
};

}  // namespace rtev
