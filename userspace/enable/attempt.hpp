// SPDX-License-Identifier: MIT
// Has the runtime of a running program switch its events on or off.
#pragma once

#include <cstdint>

#include "enable/guardian.hpp"
#include "enable/journal.hpp"
#include "enable/progress.hpp"
#include "enable/silent_processes.hpp"
#include "enable/suspect_files.hpp"
#include "enable/target.hpp"

namespace rtev::enable {

/// How long a hook stays replaced at the most, if the program sleeps meanwhile. Its threads do not take turns then; but
/// whichever runs OCaml code first starts the events, which ends that.
inline constexpr std::uint64_t max_replaced_ns = 800'000'000;

/// What the supervisor knows of a worker, and the worker of those before it. All of it outlives the worker.
struct Supervision {
  const Progress& progress;
  const SilentProcesses& silent;
  const SuspectFiles& suspects;
};

/// Has the domain whose thread has this thread pointer call caml_runtime_events_start() where it may, within this time
/// (see above). The program must run now. False if it did not come to such a place in time, or the thread has no
/// domain: try again when it runs the next time.
Checked<bool> start_events(const Procfs& procfs, const Target& target, std::uint64_t thread_pointer,
                           std::uint64_t window_ns, const Journal& journal, Guardian& guardian,
                           const Supervision& supervision);

/// Pauses or resumes the events of a program that has a ring, by the runtime's own flag: what
/// caml_runtime_events_pause() does besides is to write an event, and that after the flag is set, when nothing is
/// written any more. The program need not run.
Checked<void> set_paused(const Target& target, bool paused);

/// Takes back what start_events() has done to a program whose events are paused: removes the ring's file, and has the
/// runtime believe that it has no ring. Otherwise children that the program forks would begin to write rings of their
/// own. The runtime does not remove the file then: if it cannot be removed now, nothing is changed.
/// False then.
bool forget_ring(const Procfs& procfs, const Target& target);

/// Puts hooks back that a killed run left replaced. The journal is locked meanwhile.
void mend_left_hooks(const Journal& journal);

}  // namespace rtev::enable
