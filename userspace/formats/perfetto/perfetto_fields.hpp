// SPDX-License-Identifier: MIT
// The part of Perfetto's trace format that is written: field numbers of its messages, values of its enums.
// Source: protos/perfetto/trace/ of github.com/google/perfetto. There numbers never change their meaning.
#pragma once

#include <cstdint>

namespace rtev::perfetto {

using Tag = std::uint32_t;

enum class Trace : Tag { packet = 1 };

enum class TracePacket : Tag {
  ftrace_events = 1,
  process_tree = 2,
  clock_snapshot = 6,
  timestamp = 8,
  sequence_id = 10,
  track_event = 11,
  interned_data = 12,
  sequence_flags = 13,
  previous_packet_dropped = 42,
  system_info = 45,
  track_descriptor = 60,
  perf_sample = 66,
  first_packet_on_sequence = 87,
};
enum SequenceFlag : std::uint32_t { state_cleared = 1, needs_state = 2 };

enum class ClockSnapshot : Tag { clocks = 1, primary_trace_clock = 2 };
enum class Clock : Tag { id = 1, timestamp = 2 };
enum ClockId : std::uint32_t { realtime = 1, monotonic = 3, boottime = 6 };

enum class SystemInfo : Tag { utsname = 1 };
enum class Utsname : Tag { sysname = 1, release = 3, machine = 4 };

enum class ProcessTree : Tag { processes = 1, threads = 2 };
enum class TreeProcess : Tag { pid = 1, cmdline = 3 };
enum class TreeThread : Tag { tid = 1, name = 2, tgid = 3 };

enum class TrackDescriptor : Tag {
  uuid = 1,
  name = 2,
  process = 3,
  thread = 4,
  parent_uuid = 5,
  counter = 8,
  child_ordering = 11,
  sibling_order_rank = 12,
  sibling_merge_behavior = 15,
};
inline constexpr std::int32_t ordering_explicit = 3, merge_none = 2;
enum class ProcessDescriptor : Tag { pid = 1, process_name = 6 };
enum class ThreadDescriptor : Tag { pid = 1, tid = 2, thread_name = 5 };
enum class CounterDescriptor : Tag { unit = 3, unit_name = 6 };
inline constexpr std::int32_t unit_count = 2;

enum class TrackEvent : Tag {
  category_iids = 3,
  debug_annotations = 4,
  type = 9,
  name_iid = 10,
  track_uuid = 11,
  categories = 22,
  name = 23,
  counter_value = 30,
  flow_ids = 47,
  terminating_flow_ids = 48,
};
enum class EventType : std::int32_t { slice_begin = 1, slice_end = 2, instant = 3, counter = 4 };

enum class DebugAnnotation : Tag {
  name_iid = 1,
  bool_value = 2,
  uint_value = 3,
  int_value = 4,
  string_value = 6,
  name = 10,
  array_values = 12,
};

enum class InternedData : Tag {
  event_categories = 1,
  event_names = 2,
  debug_annotation_names = 3,
  function_names = 5,
  frames = 6,
  callstacks = 7,
  build_ids = 16,
  mapping_paths = 17,
  source_paths = 18,
  mappings = 19,
};
enum class InternedName : Tag { iid = 1, name = 2 };

enum class PerfSample : Tag { cpu = 1, pid = 2, tid = 3, callstack_iid = 4, cpu_mode = 5 };
inline constexpr std::uint32_t mode_kernel = 1, mode_user = 2;
enum class Mapping : Tag { iid = 1, build_id = 2, path_string_ids = 7 };
enum class Frame : Tag {
  iid = 1,
  function_name_id = 2,
  mapping_id = 3,
  rel_pc = 4,
  source_path_iid = 5,
  line_number = 6,
};
/// Frames: the outermost one first.
enum class Callstack : Tag { iid = 1, frame_ids = 2 };

enum class FtraceEventBundle : Tag { cpu = 1, event = 2 };
enum class FtraceEvent : Tag { timestamp = 1, pid = 2, sched_switch = 4, sched_waking = 20, sched_process_free = 239 };
enum class SchedSwitchEvent : Tag {
  prev_comm = 1,
  prev_pid = 2,
  prev_prio = 3,
  prev_state = 4,
  next_comm = 5,
  next_pid = 6,
  next_prio = 7,
};
enum class SchedWaking : Tag { comm = 1, pid = 2, prio = 3, success = 4, target_cpu = 5 };
enum class SchedProcessFree : Tag { comm = 1, pid = 2, prio = 3 };

}  // namespace rtev::perfetto
