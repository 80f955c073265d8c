// SPDX-License-Identifier: MIT
#include "formats/viewer/task_tracks.hpp"

#include <utility>

namespace rtev {

void TaskTracks::add(const EventContext& context) {
  registry_ = &context.registry;
  tracker_.add(context.event, context.batch, context.registry);
}

void TaskTracks::finish(std::uint64_t end_ns, const Registry& registry) {
  registry_ = &registry;
  tracker_.finish(end_ns);
}

TaskTracks::Row* TaskTracks::row_of(ProcessIndex process, const Task& task) {
  const RowKey key{process, task.library, task.id};
  auto found = rows_.find(key);
  if (found == rows_.end()) {
    Process& of = processes_[process];
    if (of.tracks >= max_tracks) {
      ++of.left_out;
      return nullptr;
    }
    ++of.tracks;
    found = rows_.try_emplace(key).first;
    Track& track = found->second.track;
    track.id = tracks_.next_id();
    track.process = process;
    track.pid = registry_->process(process).pid;
    track.tid = next_tid_;
    track.is_thread = false;
    track.is_task = true;
    next_tid_ = next_tid_ == last_task_tid ? first_task_tid : next_tid_ + 1;
  }
  TextBuffer name;
  append(name, TaskName{.task = task, .whole = true});
  Track& track = found->second.track;
  if (track.name != name.text()) {
    track.name = name.text();
    writer_.name_track(track);
  }
  return &found->second;
}

void TaskTracks::on_task_created(ProcessIndex process, const Task& task) {
  if (row_of(process, task) == nullptr || !task.creator) return;
  const Task* const creator = tracker_.find(process, task.library, *task.creator);
  Row* const row = creator != nullptr ? row_of(process, *creator) : nullptr;
  if (row != nullptr && row->created.size() < max_arrows) row->created.emplace_back(process, task.library, task.id);
}

void TaskTracks::on_task_interval(ProcessIndex process, const Task& task, const TaskInterval& interval) {
  Row* const row = row_of(process, task);
  if (row == nullptr) return;
  TaskSpan span{.begin_ns = interval.begin_ns, .end_ns = interval.end_ns};
  flows_out_.clear();
  switch (interval.state) {
    case TaskState::running:
      name_ = "domain " + std::to_string(interval.domain);
      // An arrow arrives only if it left before: its creator's span may never be known.
      for (const RowKey& created : std::exchange(row->created, {})) {
        const auto target = rows_.find(created);
        if (target == rows_.end() || target->second.flow_in != 0) continue;
        target->second.flow_in = next_flow_;
        flows_out_.push_back(next_flow_++);
      }
      span.flows = {.out = flows_out_, .in = std::exchange(row->flow_in, 0)};
      break;
    case TaskState::runnable:
      name_ = to_string(interval.state);
      break;
    case TaskState::suspended:
      name_ = interval.operation.empty() ? to_string(interval.state) : interval.operation;
      break;
  }
  span.name = name_;
  if (!std::exchange(row->begun, true)) {
    if (task.context) context_ = tracker_.context_text(process, *task.context);
    span.creator = task.creator;
    span.context = task.context ? std::string_view(context_) : std::string_view();
  }
  writer_.task_span(row->track, span);
}

void TaskTracks::on_task_end(ProcessIndex process, const Task& task, TaskEnd how, std::string_view error,
                             std::uint64_t time_ns) {
  const auto row = rows_.find({process, task.library, task.id});
  if (row == rows_.end()) return;
  if (how != TaskEnd::finished) writer_.task_point(row->second.track, time_ns, to_string(how), error);
  writer_.forget_track(row->second.track);
  rows_.erase(row);
}

void TaskTracks::on_tasks_gone(ProcessIndex process, std::uint64_t time_ns) {
  const auto of = processes_.find(process);
  if (of == processes_.end()) return;
  auto row = rows_.lower_bound({process, TaskLibrary{}, INT64_MIN});
  if (of->second.left_out > 0 && row != rows_.end() && std::get<0>(row->first) == process) {
    name_ = "more tasks than " + std::to_string(max_tracks) + ": not all have a track";
    writer_.task_point(row->second.track, time_ns, name_, {});
  }
  while (row != rows_.end() && std::get<0>(row->first) == process) {
    writer_.forget_track(row->second.track);
    row = rows_.erase(row);
  }
  processes_.erase(of);
}

}  // namespace rtev
