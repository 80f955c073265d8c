// SPDX-License-Identifier: MIT
#include "formats/perfetto/perfetto_tracks.hpp"

namespace rtev::perfetto {
namespace {

/// Tracks of rings are the first of a process, then those of its tasks, then counters by domain.
constexpr std::int32_t tasks_rank = 1 << Source::domain_bits, first_counter_rank = tasks_rank + 1,
                       ranks_of_a_domain = 256;

/// Counters without a known name share one track of the domain: a hostile program may use any id.
constexpr std::uint16_t unknown_counter = UINT16_MAX;

/// Counters of one process that are kept.
constexpr std::size_t max_counters = 8192;

}  // namespace

template <typename Fill>
void Tracks::describe(std::uint64_t time, std::uint64_t id, Fill&& fill) {
  packets_.add(time, [&](Packet& packet) {
    Message<TrackDescriptor> descriptor{packet, TracePacket::track_descriptor};
    descriptor.add_number(TrackDescriptor::uuid, id);
    fill(descriptor);
  });
}

void Tracks::name_process(std::uint64_t time, std::int32_t pid, std::string_view name) {
  Process& process = processes_[pid];
  process.name = name;
  packets_.add(time, [&](Packet& packet) {
    Message<ProcessTree> tree{packet, TracePacket::process_tree};
    Message<TreeProcess> entry{tree, ProcessTree::processes};
    entry.add_number(TreeProcess::pid, pid);
    add_text(entry, TreeProcess::cmdline, name);
  });
  if (process.id != 0) describe_process(time, pid, process);
}

/// Threads are written to the process tree at once: scheduler events have only tids.
void Tracks::name_track(std::uint64_t time, const Track& track) {
  const auto [known, is_new] = tracks_.try_emplace(track.id);
  if (is_new) ++processes_[track.pid].tracks;
  if (track.is_thread) {
    packets_.add(time, [&](Packet& packet) {
      Message<ProcessTree> tree{packet, TracePacket::process_tree};
      Message<TreeThread> entry{tree, ProcessTree::threads};
      entry.add_number(TreeThread::tid, track.tid);
      add_text(entry, TreeThread::name, track.name);
      entry.add_number(TreeThread::tgid, track.pid);
    });
  }
  if (known->second != 0) describe(time, track, known->second);
}

void Tracks::forget(const Track& track) {
  if (tracks_.erase(track.id) == 0) return;
  const auto process = processes_.find(track.pid);
  if (process == processes_.end() || --process->second.tracks > 0) return;
  for (const CounterKey& key : process->second.counters) counters_.erase(key);
  processes_.erase(process);
}

std::uint64_t Tracks::find(std::uint64_t time, const Track& track) {
  std::uint64_t& id = tracks_[track.id];
  if (id == 0) {
    // The track of a thread refers to its process by pid; the process needs a name, too.
    process_id(time, track.pid);
    if (track.is_task) group_of_tasks(time, track.pid);
    id = next_id_++;
    describe(time, track, id);
  }
  recent_[track.id % recent_.size()] = {.track = track.id, .id = id};
  return id;
}

std::uint64_t Tracks::process_id(std::uint64_t time, std::int32_t pid) {
  Process& process = processes_[pid];
  if (process.id == 0) {
    process.id = next_id_++;
    describe_process(time, pid, process);
  }
  return process.id;
}

std::uint64_t Tracks::group_of_tasks(std::uint64_t time, std::int32_t pid) {
  const std::uint64_t parent = process_id(time, pid);
  std::uint64_t& id = processes_[pid].tasks;
  if (id != 0) return id;
  id = next_id_++;
  describe(time, id, [&](Message<TrackDescriptor>& descriptor) {
    descriptor.add_number(TrackDescriptor::parent_uuid, parent);
    descriptor.add_bytes(TrackDescriptor::name, "tasks");
    descriptor.add_number(TrackDescriptor::sibling_order_rank, tasks_rank);
    descriptor.add_number(TrackDescriptor::child_ordering, ordering_explicit);
  });
  return id;
}

void Tracks::describe(std::uint64_t time, const Track& track, std::uint64_t id) {
  describe(time, id, [&](Message<TrackDescriptor>& descriptor) {
    const Process& process = processes_[track.pid];
    descriptor.add_number(TrackDescriptor::parent_uuid, track.is_task ? process.tasks : process.id);
    if (track.is_thread) {
      Message<ThreadDescriptor> thread{descriptor, TrackDescriptor::thread};
      thread.add_number(ThreadDescriptor::pid, track.pid);
      thread.add_number(ThreadDescriptor::tid, track.tid);
      add_text(thread, ThreadDescriptor::thread_name, track.name);
    } else {
      add_text(descriptor, TrackDescriptor::name, track.name);
      descriptor.add_number(TrackDescriptor::sibling_order_rank,
                            track.is_task ? track.tid - first_task_tid : track.domain);
      descriptor.add_number(TrackDescriptor::sibling_merge_behavior, merge_none);
    }
  });
}

void Tracks::describe_process(std::uint64_t time, std::int32_t pid, const Process& process) {
  describe(time, process.id, [&](Message<TrackDescriptor>& descriptor) {
    descriptor.add_number(TrackDescriptor::child_ordering, ordering_explicit);
    Message<ProcessDescriptor> body{descriptor, TrackDescriptor::process};
    body.add_number(ProcessDescriptor::pid, pid);
    add_text(body, ProcessDescriptor::process_name, process.name);
  });
}

/// Bounds the counters of a program that spawns domains again and again. A counter that is used after it was forgotten
/// gets another track.
void Tracks::remember(std::vector<CounterKey>& known, const CounterKey& key) {
  if (known.size() >= max_counters) {
    for (const CounterKey& old : known) {
      if (old != key) counters_.erase(old);
    }
    known.clear();
  }
  known.push_back(key);
}

std::uint64_t Tracks::counter_of(const Track& track, const EventContext& context) {
  const Event& event = context.event;
  const std::string_view name = known_name_of(event, context.registry);
  const std::uint16_t counter = name.empty() ? unknown_counter : event.id;
  const std::uint16_t domain = Source::unpack(event.source).domain;
  const CounterKey key{track.process, track.incarnation, domain, counter};
  std::uint64_t& id = counters_[key];
  if (id != 0) return id;
  const std::uint64_t parent = process_id(event.time, track.pid);
  remember(processes_[track.pid].counters, key);
  id = next_id_++;
  describe(event.time, id, [&](Message<TrackDescriptor>& descriptor) {
    descriptor.add_number(TrackDescriptor::parent_uuid, parent);
    std::string title = "domain " + std::to_string(domain);
    if (track.incarnation > 1) title += " #" + std::to_string(track.incarnation);
    title += ": ";
    title += name.empty() ? "unknown counters" : name;
    descriptor.add_bytes(TrackDescriptor::name, title);
    descriptor.add_number(
        TrackDescriptor::sibling_order_rank,
        first_counter_rank + ranks_of_a_domain * domain + static_cast<std::int32_t>(counter % ranks_of_a_domain));
    Message<CounterDescriptor> body{descriptor, TrackDescriptor::counter};
    const auto family = context.registry.family_of(event);
    const std::string_view unit = family ? counter_unit(*family, event.id) : std::string_view{};
    if (unit.empty()) {
      body.add_number(CounterDescriptor::unit, unit_count);
    } else {
      body.add_bytes(CounterDescriptor::unit_name, unit);
    }
  });
  return id;
}

std::uint64_t Tracks::recording(std::uint64_t time) {
  if (recording_ != 0) return recording_;
  recording_ = next_id_++;
  describe(time, recording_,
           [&](Message<TrackDescriptor>& descriptor) { descriptor.add_bytes(TrackDescriptor::name, "rtev-bpf"); });
  return recording_;
}

}  // namespace rtev::perfetto
