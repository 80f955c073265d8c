// SPDX-License-Identifier: MIT
// The layout of a recording: the names and numbers that FxtSink writes and Replay reads.
//
// A recording is an FXT trace that viewers show, and from which Replay restores the stream of events exactly. Each
// event is one record, in the order of the stream:
//
//   begin, end                duration begin, end (an end without a begin: an instant with "stray")
//   counter                   counter with one uint64, named by its unit; counter id = domain and, above its bits,
//                             how many incarnations it had before
//   alloc                     instant with "total" and "buckets"
//   lifecycle                 instant with "value"
//   user_unit, _int, _custom  instant without argument, with int64 "value", with string "text" or blob "bytes"
//   lost                      instant with "words", "from", "to", "reason", after a provider event "buffer full"
//   process                   instant with "index", "peer", "detail", on the main thread of the process
//   sample                    instant with the fields of a Sample, see sample_fields()
//   sched_switch, wakeup      scheduling records with weights (priorities of the kernel), and "rtev" if needed
//   other                     instant with "bytes" or "value" (see StringId::raw)
//
// Times are CLOCK_MONOTONIC in ns; a tick is one ns. Event::flags are the uint32 "flags" unless 0. Records that viewers
// need besides events have the category "rtev:drawn", or for scheduling records an argument of that name; Replay skips
// them.
//
// All other data are metadata records: userspace objects, which viewers skip. The name of the first argument is the
// kind of the object (metadata_* below):
//
//   rtev:string     the string slot in the object's name means this StringId::pack()
//   rtev:source     the thread slot of the object's process means this Source::pack()
//   rtev:script     address = index: ProcessInfo::script of the process that follows, if it has one
//   rtev:process    address = index: ProcessInfo without what rtev:accounting has
//   rtev:service    address = index: its ServiceIdentity, if anything is known
//   rtev:accounting address = index: figures of the process
//   rtev:missed     address = index: its MissedRings, if there are any
//   rtev:left_alone address = index: its LeftAlone, if it was
//   rtev:ring       address = slot: its process, and the rest of RingInfo
//   rtev:ring_gone, rtev:process_gone  address = slot, index: no later event refers to it
//   rtev:thread     address = tid: the fields of a thread in switches and wakeups that rarely change
//   rtev:idle       address = number: the same of an idle thread, of which each CPU has one
//   rtev:threads_gone  the reader's table of threads is emptied
//   rtev:frame      address = index: a StackFrame
//   rtev:stack      address = index: the frame and the caller of a stack. It may follow the samples that refer to it
//   rtev:header     RunHeader; before any event. NotRecorded and "shown_from" only if there are such
//   rtev:argument   a piece of an argument of its command line, and whether the next object continues it
//   rtev:list       the processes after it are those of the summary
//   rtev:others     Registry::Others
//   rtev:events     a part of RunSummary::events; arguments are named after kinds
//   rtev:drop       one of RunSummary::drops
//   rtev:announcer  one of RunSummary::announcers
//   rtev:summary    the rest of RunSummary; the stream ends with it
//
// Metadata precedes the first event that needs it, and is repeated after changes. Slots of the string and thread tables
// are reused: their new meaning is written first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rtev/event.hpp"
#include "rtev/fxt.hpp"
#include "stream/records.hpp"
#include "stream/registry.hpp"
#include "stream/sink.hpp"

namespace rtev::record {

inline constexpr std::string_view drawn = "rtev:drawn";

inline constexpr std::string_view sample_category = "sample", runtime_category = "gc", user_category = "user",
                                  process_category = "process", raw_category = "rtev:raw";

inline constexpr std::string_view metadata_string = "rtev:string", metadata_source = "rtev:source",
                                  metadata_process = "rtev:process", metadata_script = "rtev:script",
                                  metadata_service = "rtev:service", metadata_accounting = "rtev:accounting",
                                  metadata_missed = "rtev:missed", metadata_left_alone = "rtev:left_alone",
                                  metadata_ring = "rtev:ring", metadata_ring_gone = "rtev:ring_gone",
                                  metadata_process_gone = "rtev:process_gone", metadata_thread = "rtev:thread",
                                  metadata_idle = "rtev:idle", metadata_threads_gone = "rtev:threads_gone",
                                  metadata_frame = "rtev:frame", metadata_stack = "rtev:stack",
                                  metadata_header = "rtev:header", metadata_argument = "rtev:argument",
                                  metadata_list = "rtev:list", metadata_others = "rtev:others",
                                  metadata_events = "rtev:events", metadata_drop = "rtev:drop",
                                  metadata_announcer = "rtev:announcer", metadata_summary = "rtev:summary";

/// Arguments of "rtev:header", by Family.
inline constexpr std::array<std::string_view, 2> left_out_phases{"left_out_phases_before_5_3", "left_out_phases"};

/// Version of this layout: the value of "rtev:header".
inline constexpr std::uint32_t format_version = 2;

/// Bytes of a string in metadata; longer ones are cut. A path has at most 4096.
inline constexpr std::size_t max_metadata_bytes = 6000;
/// Bytes of a payload. Messages of a ring have less than 8 KiB.
inline constexpr std::size_t max_payload_bytes = 32'000;
/// Bytes of an argument of the command line in one object.
inline constexpr std::size_t argument_piece_bytes = 16'000;

/// Meaning of a string slot: the value of "rtev:string". Begin and end share the id of the begin, all kinds of user
/// events that of user_unit.
struct StringId {
  EventKind kind{};
  bool raw = false;         ///< of an event for which there is no other record
  bool known = false;       ///< user event: the string is its name; false: it has none
  std::uint16_t id = 0;     ///< Event::id
  std::uint32_t scope = 0;  ///< user event: the slot of its ring; else the family

  static constexpr unsigned scope_bits = 20;

  constexpr std::uint64_t pack() const {
    return std::uint64_t{scope} << 32 | std::uint64_t{id} << 16 | std::uint64_t{known} << 9 | std::uint64_t{raw} << 8 |
           static_cast<std::uint64_t>(kind);
  }
  static constexpr StringId unpack(std::uint64_t bits) {
    return {.kind = static_cast<EventKind>(bits & 0xff),
            .raw = (bits >> 8 & 1) != 0,
            .known = (bits >> 9 & 1) != 0,
            .id = static_cast<std::uint16_t>(bits >> 16),
            .scope = static_cast<std::uint32_t>(bits >> 32) & ((1u << scope_bits) - 1)};
  }
};

/// The kind in the StringId of an event.
constexpr EventKind group_of(EventKind kind) {
  if (kind == EventKind::end) return EventKind::begin;
  return is_user_event(kind) ? EventKind::user_unit : kind;
}

/// The int32 argument "rtev" of a scheduling record, omitted if 0. `first` is the thread that leaves or is woken,
/// `second` the one that enters or wakes.
struct SchedExtra {
  static constexpr std::uint32_t max_idle = 4094;
  static constexpr std::int16_t nice_0 = 120;

  std::uint32_t state = 0;  ///< 1 + LeftState if the state of the record means another one
  bool first_holds_lock = false, second_holds_lock = false;
  std::uint32_t idle = 0;  ///< 1 + number of the idle thread, unless it is that of the last switch on this CPU
  // Both have the same bits.
  std::int8_t second_nice = 0;  ///< wakeup: priority of a waker that is not idle, minus that of nice 0
  std::uint8_t syscall = 0;     ///< switch: a Syscall

  constexpr std::int32_t pack() const {
    return static_cast<std::int32_t>(
        state | std::uint32_t{first_holds_lock} << 4 | std::uint32_t{second_holds_lock} << 5 | idle << 8 |
        std::uint32_t{static_cast<std::uint8_t>(second_nice)} << 20 | std::uint32_t{syscall} << 20);
  }
  static constexpr SchedExtra unpack(std::int32_t packed) {
    const auto bits = static_cast<std::uint32_t>(packed);
    return {.state = bits & 15,
            .first_holds_lock = (bits >> 4 & 1) != 0,
            .second_holds_lock = (bits >> 5 & 1) != 0,
            .idle = bits >> 8 & 4095,
            .second_nice = static_cast<std::int8_t>(bits >> 20 & 255),
            .syscall = static_cast<std::uint8_t>(bits >> 20 & 255)};
  }
};

/// The state of a thread that left its CPU, in FXT, which has fewer states.
constexpr fxt::ThreadState shown_state(LeftState state) {
  switch (state) {
    case LeftState::preempted:
      return fxt::ThreadState::running;
    case LeftState::stopped:
    case LeftState::traced:
      return fxt::ThreadState::suspended;
    case LeftState::dead:
      return fxt::ThreadState::dead;
    default:
      return fxt::ThreadState::blocked;
  }
}

/// The inverse, if SchedExtra::state is 0.
constexpr LeftState meant_state(fxt::ThreadState state) {
  switch (state) {
    case fxt::ThreadState::suspended:
      return LeftState::stopped;
    case fxt::ThreadState::blocked:
      return LeftState::sleeping;
    case fxt::ThreadState::dying:
    case fxt::ThreadState::dead:
      return LeftState::dead;
    default:
      return LeftState::preempted;
  }
}

/// Size of the table of threads. When it is full, it is emptied (rtev:threads_gone).
inline constexpr std::size_t max_threads = std::size_t{1} << 16;

// Fields of metadata records, for both MetadataWriter and MetadataReader: each function calls field(name, member) for
// the members of a struct, which is const for the writer.

// The largest value of each enumeration, which a reader accepts.
constexpr Family last_of(Family) {
  return Family::since_5_3;
}
constexpr FamilySource last_of(FamilySource) {
  return FamilySource::forced;
}
constexpr RingState last_of(RingState) {
  return RingState::unreadable;
}
constexpr ThreadRole last_of(ThreadRole) {
  return ThreadRole::tick;
}
constexpr FrameKind last_of(FrameKind) {
  return FrameKind::bytecode;
}

/// Of an Accounting.
template <typename Words, typename Field>
void word_fields(Words& words, Field&& field) {
  field("written", words.written);
  field("delivered", words.delivered);
  field("lost", words.lost);
  field("before_attach", words.before_attach);
  field("corrupt", words.corrupt);
  field("unread", words.unread);
  field("events", words.events);
}

/// Of a MissedRings, except for `too_large`, which recordings of 0.2.0 lack.
template <typename Missed, typename Field>
void missed_fields(Missed& missed, Field&& field) {
  field("file_system", missed.file_system);
  field("no_answer", missed.no_answer);
  field("memory", missed.memory);
  field("other_user", missed.other_user);
  field("gone", missed.gone);
}

/// Of a LeftAlone.
template <typename Pauses, typename Field>
void left_alone_fields(Pauses& pauses, Field&& field) {
  field("times", pauses.times);
  field("ns", pauses.ns);
}

/// Of a ProcessInfo, except for its figures, `max_rss_bytes` and `script`, which are optional.
template <typename Info, typename Field>
void process_fields(Info& info, Field&& field) {
  field("pid", info.pid);
  field("ns_pid", info.ns_pid);
  field("start_ticks", info.start_ticks);
  field("exec_generation", info.exec_generation);
  field("comm", info.comm);
  field("exe", info.exe);
  field("runtime", info.runtime);
  field("version", info.version);
  field("family", info.family);
  field("family_source", info.family_source);
  field("ring", info.ring);
  field("ring_path", info.ring_path);
  field("ended", info.ended);
}

/// Of a ServiceIdentity.
template <typename Service, typename Field>
void service_fields(Service& service, Field&& field) {
  field("name", service.name);
  field("version", service.version);
  field("cgroup", service.cgroup);
  field("host_name", service.host_name);
}

/// Of a RunHeader, except for the command line.
template <typename Header, typename Field>
void header_fields(Header& header, Field&& field) {
  field("version", header.version);
  field("host", header.host);
  field("kernel", header.kernel);
  field("machine", header.machine);
  field("start", header.start_ns);
  field("start_realtime", header.start_realtime_ns);
}

/// Of a RunSummary, except for its lists.
template <typename Summary, typename Field>
void summary_fields(Summary& summary, Field&& field) {
  field("start", summary.start_ns);
  field("end", summary.end_ns);
  field("late", summary.late);
  field("forced", summary.forced);
  field("rings_missed", summary.rings_missed);
  field("own_cpu", summary.own_cpu_ns);
  field("own_max_rss", summary.own_max_rss_bytes);
  field("complete", summary.complete);
}

/// Of a Sample.
template <typename AnySample, typename Field>
void sample_fields(AnySample& sample, Field&& field) {
  field("process", sample.process);
  field("pid", sample.pid);
  field("tid", sample.tid);
  field("domain", sample.domain);
  field("cpu", sample.cpu);
  field("stack", sample.stack);
  field("weight", sample.weight);
  field("role", sample.role);
  field("lock", sample.holds_lock);
}

/// Of a StackFrame.
template <typename Frame, typename Field>
void frame_fields(Frame& frame, Field&& field) {
  field("kind", frame.kind);
  field("inlined", frame.inlined);
  field("line", frame.line);
  field("address", frame.address);
  field("function", frame.function);
  field("file", frame.file);
  field("object", frame.object);
  field("build_id", frame.build_id);
}

/// Of a thread, except for its name.
template <typename AnyThread, typename Field>
void thread_fields(AnyThread& thread, Field&& field) {
  field("pid", thread.pid);
  field("domain", thread.domain);
  field("role", thread.role);
  field("tracked", thread.tracked);
}

}  // namespace rtev::record
