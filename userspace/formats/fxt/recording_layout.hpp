// SPDX-License-Identifier: MIT
// What makes an FXT file a recording of ours: the names and numbers that FxtSink and Replay share.
//
// A recording is a trace that viewers show, and a stream of Events that can be had back exactly. Each event of the
// stream is one record, in the stream's order:
//
//   begin, end              duration begin, end (an end that has no begin to end: an instant with "stray")
//   counter                 counter with one uint64, named by its unit; counter id = domain, and
//                           above its bits how many had the number before
//   alloc                   instant with "total" and "buckets"
//   lifecycle               instant with "value"
//   user_unit, _int, _custom  instant without argument, with int64 "value", with string "text" or blob "bytes"
//   lost                    instant with "words", "from", "to", "reason"; behind a provider event "buffer full"
//   process                 instant with "index", "peer", "detail", on the process's main thread
//   sched_switch, wakeup    scheduling records with weights (the kernel's priorities), and "rtev" where need be
//   what fits none of these  instant with "bytes" or "value" (see StringId::raw)
//
// Time is CLOCK_MONOTONIC in ns, and one tick. Event::flags are the uint32 "flags" unless 0. What completes the picture
// and is no event has the category "rtev:drawn", or as a scheduling record the argument of that name, and is skipped.
//
// Everything else that Replay must know is told by userspace objects, which viewers skip. The name of the first
// argument says what an object tells (metadata_* below):
//
//   rtev:string     the string slot that names the object stands for an event id, see StringId
//   rtev:source     the thread slot of the object's process stands for this Source::pack()
//   rtev:process    address = index; all of ProcessInfo but what rtev:accounting tells
//   rtev:accounting address = index: the process's figures
//   rtev:ring       address = slot: the process it belongs to, and more of RingInfo
//   rtev:ring_gone, rtev:process_gone  address: slot, index; no event refers to it any more
//   rtev:thread     address = tid; what switches and wakeups say of a thread each time
//   rtev:idle       address = number; the same of an idle thread, of which there is one for each cpu
//   rtev:threads_gone  all that was said of threads is void
//   rtev:header     RunHeader; before any event
//   rtev:argument   a piece of one of its command line's arguments, which goes on in the next object or not
//   rtev:list       the end begins: processes told from here on are those to be listed
//   rtev:others     Registry::Others
//   rtev:events     RunSummary::events; arguments are named after kinds
//   rtev:drop       one of RunSummary::drops
//   rtev:summary    the rest of RunSummary; the stream ends with it
//
// Facts are told before the first event that they are facts of, and again when they changed. Slots of the string and
// thread table are used again: what they mean is told anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rtev/event.hpp"
#include "rtev/fxt.hpp"
#include "stream/records.hpp"

namespace rtev::record {

inline constexpr std::string_view drawn = "rtev:drawn";

inline constexpr std::string_view runtime_category = "gc", user_category = "user", process_category = "process",
                                  raw_category = "rtev:raw";

inline constexpr std::string_view metadata_string = "rtev:string", metadata_source = "rtev:source",
                                  metadata_process = "rtev:process", metadata_accounting = "rtev:accounting",
                                  metadata_ring = "rtev:ring", metadata_ring_gone = "rtev:ring_gone",
                                  metadata_process_gone = "rtev:process_gone", metadata_thread = "rtev:thread",
                                  metadata_idle = "rtev:idle", metadata_threads_gone = "rtev:threads_gone",
                                  metadata_header = "rtev:header", metadata_argument = "rtev:argument",
                                  metadata_list = "rtev:list", metadata_others = "rtev:others",
                                  metadata_events = "rtev:events", metadata_drop = "rtev:drop",
                                  metadata_summary = "rtev:summary";

/// Version of all this: the value of "rtev:header".
inline constexpr std::uint32_t format_version = 2;

/// Bytes of any string of a fact; longer ones are cut. A path has 4096 at the most.
inline constexpr std::size_t max_metadata_bytes = 6000;
/// Of a payload. A ring's messages have less than 8 KiB.
inline constexpr std::size_t max_payload_bytes = 32'000;
/// Bytes of an argument of the command line in one object.
inline constexpr std::size_t argument_piece_bytes = 16'000;

/// What a string slot stands for: the value of "rtev:string". Begin and end have the word of the begin, all kinds of
/// user events that of user_unit.
struct StringId {
  EventKind kind{};
  bool raw = false;         ///< of an event that fits no other record
  bool known = false;       ///< of a user event: the string is its name and not made up for one that has none
  std::uint16_t id = 0;     ///< Event::id
  std::uint32_t scope = 0;  ///< of a user event the slot of its ring; else whatever tells texts apart

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

/// The kind in whose name all events of a group are known.
constexpr EventKind group_of(EventKind kind) {
  if (kind == EventKind::end) return EventKind::begin;
  return kind >= EventKind::user_unit && kind <= EventKind::user_custom ? EventKind::user_unit : kind;
}

/// The int32 argument "rtev" of a scheduling record; left out if 0. `first` is who leaves or is woken, `second` who
/// enters or wakes.
struct SchedExtra {
  static constexpr std::uint32_t max_idle = 4094;
  static constexpr std::int16_t nice_0 = 120;

  std::uint32_t state = 0;  ///< 1 + LeftState where the record's own state says something else
  bool first_holds_lock = false, second_holds_lock = false;
  std::uint32_t idle = 0;  ///< 1 + number of the idle thread, where it is not the one of the last switch on that cpu
  std::int8_t second_nice = 0;  ///< wakeup: priority of a waker that is not idle, less that of nice 0

  constexpr std::int32_t pack() const {
    return static_cast<std::int32_t>(state | std::uint32_t{first_holds_lock} << 4 |
                                     std::uint32_t{second_holds_lock} << 5 | idle << 8 |
                                     std::uint32_t{static_cast<std::uint8_t>(second_nice)} << 20);
  }
  static constexpr SchedExtra unpack(std::int32_t packed) {
    const auto bits = static_cast<std::uint32_t>(packed);
    return {.state = bits & 15,
            .first_holds_lock = (bits >> 4 & 1) != 0,
            .second_holds_lock = (bits >> 5 & 1) != 0,
            .idle = bits >> 8 & 4095,
            .second_nice = static_cast<std::int8_t>(bits >> 20 & 255)};
  }
};

/// What a viewer is told of a thread that left its cpu; the format knows no more.
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

/// And what that means if nothing else is said.
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

/// Threads, and idle threads, that are known at a time: beyond it the recorder says that they are gone and begins anew.
inline constexpr std::size_t max_threads = std::size_t{1} << 16;

}  // namespace rtev::record
