// SPDX-License-Identifier: MIT
// Payloads of the events of the tracer and the kernel in the stream. Trivially copyable.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "rtev/event.hpp"
#include "stream/stacks.hpp"

namespace rtev {

using ProcessIndex = std::uint32_t;  ///< of a process image in the Registry

/// Source::domain values of slot 0, whose streams are not rings.
inline constexpr std::uint16_t lifecycle_stream = 0;    ///< starts and ends of processes
inline constexpr std::uint16_t first_sched_stream = 1;  ///< one per kernel buffer
inline constexpr std::uint16_t sample_stream = 4095;    ///< stacks

/// Event::id of EventKind::process.
enum class ProcessAction : std::uint16_t {
  found,       ///< was running when the tracer first saw it
  exec,        ///< began to run an OCaml program
  fork,        ///< forked by another OCaml process; peer = the parent's pid
  ring,        ///< its ring was opened; detail = number of rings in the file
  pause,       ///< asked its runtime to pause events
  resume,      ///< asked its runtime to resume events
  stop,        ///< its runtime takes the ring down
  exit,        ///< the image ended; detail = wait status, exit_unseen or exit_by_exec
  probe,       ///< it has no ring: its events come from probes until its ring is opened
  unreadable,  ///< its ring is not read; detail = an Unreadable
  enable,      ///< --enable tried to switch its events on; detail = an EnableResult
};
std::string_view to_string(ProcessAction action);

/// True for what the tracer does, not the process: its time is that of the tracer.
constexpr bool is_of_tracer(ProcessAction action) {
  using enum ProcessAction;
  return action == found || action == ring || action == probe || action == unreadable || action == enable;
}

/// ProcessRecord::detail of ProcessAction::unreadable: why.
enum class Unreadable : std::int64_t {
  file_system = 1,  ///< the file system of the ring may never answer: it is served by a program, or by the network
  no_answer = 2,    ///< the kernel did not answer questions about the process in time
  memory = 3,       ///< the rings of its user, or all rings, would take more memory or descriptors than they may
  other_user = 4,   ///< the file belongs to another user, who may write there what the process has not written
  too_large = 5,    ///< OCaml's runtime cannot make rings of that size, and writes beyond the end of its file
};
std::string_view to_string(Unreadable why);

/// What became of the attempt to switch the events of a running program on, or off. Also ProcessRecord::detail of
/// ProcessAction::enable: recordings have these numbers.
enum class EnableResult : std::int64_t {
  done,              ///< its events are on; after disable: paused
  resumed,           ///< its events were paused, and go on
  nothing_to_do,     ///< its events are on already, or off
  gone,              ///< it ended meanwhile, or runs another program
  not_ocaml,         ///< it runs no OCaml 5 program
  unknown_version,   ///< its version of OCaml is not one that was tested
  no_symbols,        ///< its program was stripped of symbols that it takes
  denied,            ///< its memory may not be written, or what guards it failed
  unexpected_value,  ///< its memory does not hold what it should
  directory,         ///< it could not make its ring there
  space,             ///< there is too little space for the ring
  limit,             ///< it has a limit that is too small for the ring
  memory,            ///< its control group has too little memory left for the ring
  seccomp,           ///< a filter of system calls might stop it
  profile,           ///< a security profile might stop it
  debugged,          ///< a debugger is attached
  suspect,           ///< it came to harm, or another process of the same program did
  not_running,       ///< it did not run in time
  no_answer,         ///< its memory, or the kernel, did not answer in time
  own_pause,         ///< it paused its events itself
  switched_off,      ///< no attempt: another run of rtev-bpf, or disable, has switched its events off
  privileged,        ///< its rights are not those of one user
  ring_size,         ///< OCaml's runtime cannot make rings of the size that its user chose
};
constexpr bool is_good(EnableResult result) {
  return result <= EnableResult::nothing_to_do;
}
std::string_view to_string(EnableResult result);

/// ProcessRecord::detail of ProcessAction::exit if it is not a wait status.
inline constexpr std::int64_t exit_unseen = -1;   ///< the end was not observed
inline constexpr std::int64_t exit_by_exec = -2;  ///< the process runs another program now

/// Payload of EventKind::process.
struct ProcessRecord {
  ProcessIndex process;
  std::int32_t peer;    ///< another pid, or 0
  std::int64_t detail;  ///< depends on the action
};

enum class ThreadRole : std::uint8_t { unknown, mutator, backup, tick };
std::string_view to_string(ThreadRole role);

/// A thread in a scheduler event.
struct Thread {
  std::int32_t pid;  ///< of the process (tgid)
  std::int32_t tid;
  std::int32_t domain;    ///< OCaml domain, -1 if unknown
  std::int16_t priority;  ///< the kernel's: 120 is nice 0, below 100 is real-time
  ThreadRole role;
  bool tracked;                     ///< belongs to an OCaml process that is traced
  bool holds_lock;                  ///< held its domain's runtime lock when it left the cpu
  std::array<char, 16> comm_bytes;  ///< set by the process: any bytes, NUL-padded

  std::string_view comm() const;
};

/// Why a thread left its cpu.
enum class LeftState : std::uint8_t {
  preempted,  ///< still runnable
  sleeping,
  uninterruptible,
  stopped,
  traced,
  dead,
  idle,
  other,
};
std::string_view to_string(LeftState state);

/// The system call in which a thread blocks. One value stands for all variants of a call, on any architecture.
/// Recordings have these numbers.
enum class Syscall : std::uint8_t {
  unknown,
  none,   ///< it touched memory that has to be read first
  other,  ///< one that is not in this list
  select,
  poll,
  epoll_wait,
  io_uring_enter,
  futex,  ///< a mutex, a condition or a semaphore
  sleep,
  wait,  ///< for a child, or for a signal
  read,
  write,
  fsync,
  open,
  accept,
  connect,
  recv,
  send,
  lock,      ///< of a file
  files,     ///< finds, lists, renames or removes files
  memory,    ///< maps or unmaps memory
  transfer,  ///< from one file to another
  ioctl,
};
inline constexpr Syscall last_syscall = Syscall::ioctl;
std::string_view to_string(Syscall syscall);

/// Payload of EventKind::sched_switch.
struct SchedSwitch {
  std::uint32_t cpu;
  LeftState state;                     ///< of prev
  Syscall syscall = Syscall::unknown;  ///< of prev, if it blocks
  Thread prev;                         ///< leaves the cpu
  Thread next;                         ///< enters the cpu
};

/// Payload of EventKind::wakeup.
struct Wakeup {
  std::uint32_t cpu;  ///< where the woken thread last ran
  Thread woken;
  Thread by;
};

/// Payload of EventKind::usage: what a thread used since its last such event. Times in ns.
struct ThreadUsage {
  std::int32_t pid;
  ThreadRole role;
  std::uint8_t delay_count;
  std::uint64_t cpu_ns;
  std::array<std::uint64_t, 14> delays_ns{};  ///< between being runnable and entering a cpu; `delay_count` of them
};

/// True for a loss of switches and wakeups: of any thread.
constexpr bool is_sched_loss(const Event& event) {
  return event.kind == EventKind::lost && Source::unpack(event.source).slot == 0 &&
         event.id == static_cast<std::uint16_t>(LossReason::dropped);
}

/// Event::id of EventKind::sample: when the stack was taken. Recordings have these numbers.
enum class SampleKind : std::uint16_t {
  on_cpu,      ///< at regular intervals of time on a CPU
  off_cpu,     ///< when the thread went to sleep; the time of the event is when it came back
  allocation,  ///< when half of the minor heap was used up
};
inline constexpr SampleKind last_sample_kind = SampleKind::allocation;
/// "on-cpu", "off-cpu", "allocation".
std::string_view to_string(SampleKind kind);

/// Of a loss of samples: of which kind they were.
constexpr std::optional<SampleKind> lost_samples(LossReason reason) {
  if (reason < LossReason::samples || reason > LossReason::allocation_samples) return std::nullopt;
  return static_cast<SampleKind>(static_cast<unsigned>(reason) - static_cast<unsigned>(LossReason::samples));
}
constexpr std::optional<SampleKind> lost_samples(const Event& event) {
  return event.kind == EventKind::lost ? lost_samples(static_cast<LossReason>(event.id)) : std::nullopt;
}

/// Payload of EventKind::sample.
struct Sample {
  ProcessIndex process;
  std::int32_t pid;  ///< of the process (tgid)
  std::int32_t tid;
  std::int32_t domain;  ///< OCaml domain, -1 if unknown
  std::uint32_t cpu;
  StackIndex stack;  ///< in Registry::stacks()
  /// What the sample stands for. on_cpu: ns of CPU time; off_cpu: ns that it slept; allocation: words, 0 if unknown.
  std::uint64_t weight;
  ThreadRole role;
  bool holds_lock;  ///< of its domain
  std::array<std::uint8_t, 6> zero;
};
static_assert(sizeof(Sample) == 40);

}  // namespace rtev
