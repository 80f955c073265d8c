// SPDX-License-Identifier: MIT
// Has the runtime of a running program switch its events on or off.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "enable/guardian.hpp"
#include "enable/journal.hpp"
#include "enable/mending.hpp"
#include "enable/progress.hpp"
#include "enable/requirements.hpp"
#include "enable/ring_place.hpp"
#include "enable/silent_processes.hpp"
#include "enable/suspects.hpp"
#include "enable/target.hpp"

namespace rtev::enable {

/// How long a hook stays replaced at the most, if the program sleeps meanwhile. Its threads do not take turns then; but
/// whichever runs OCaml code first starts the events, which ends that.
inline constexpr std::uint64_t max_replaced_ns = 800'000'000;

/// Pid and start (field 22 of /proc/PID/stat) of each.
using Processes = std::set<std::pair<std::int32_t, std::uint64_t>>;

/// What the supervisor knows of a worker, and the worker of those before it. All of it outlives the worker.
struct Supervision {
  const Progress& progress;
  const SilentProcesses& silent;
  const Suspects& suspects;
  JournalOwner supervisor;
};

enum class Started : std::uint8_t {
  no,     ///< the program came to no place where its runtime may start events, or the thread has no domain
  begun,  ///< likewise, but the runtime may be about to start them
  yes,
};

/// Has the domain whose thread has this thread pointer call caml_runtime_events_start() where it may, within this time
/// (see above). The program must run now. Unless the events are on it may be tried again when the program runs the next
/// time. `made` is the file for the ring. It lasts until the events are on, or the program is given up.
Checked<Started> start_events(const Procfs& procfs, const Target& target, std::uint64_t thread_pointer,
                              std::uint64_t window_ns, const Requirements& requirements,
                              std::optional<ReservedRing>& made, const Journal& journal, Guardian& guardian,
                              const Supervision& supervision);

/// Ends this process, as its guardian is gone: the supervisor replaces both, and asks again for what has no answer. No
/// program is to blame.
[[noreturn]] void end_without_guardian(const Progress& progress);

/// The end of attempts on a program. The file of its ring is the program's if it maps it by now; else it is removed, as
/// are the way to it and the entry of the journal.
void end_attempts(const Procfs& procfs, const Target& target, std::optional<ReservedRing>& made,
                  const Journal& journal);

/// Pauses or resumes the events of a program that has a ring, by the runtime's own flag: what
/// caml_runtime_events_pause() does besides is to write an event, and that after the flag is set, when nothing is
/// written any more. The program need not run.
Checked<void> set_paused(const Target& target, bool paused);

/// Takes back what start_events() has done to a program whose events are paused: removes the ring's file, and has the
/// runtime believe that it has no ring. Otherwise children that the program forks would begin to write rings of their
/// own. The runtime does not remove the file then: if it cannot be removed now, nothing is changed.
/// False then.
bool forget_ring(const Procfs& procfs, const Target& target);

struct Mended {
  /// What earlier workers of this supervisor tried: the events of these come on because of that, if they do.
  Processes tried{};
  /// One by one: it did not answer, and others were not looked at after it. This process should end, and say that it is
  /// at this one.
  std::optional<Progress::Work> unanswered{};
};

/// Puts hooks back that killed runs, or earlier workers of this supervisor, left replaced, and removes files of rings
/// that they made. Nothing is done on the word of an entry: the program is looked at anew, and has to be the same one,
/// of the same user, with the hook where the entry says. Takes two seconds at the most, one by one five. Leaves out
/// processes that do not answer, and those that another run works on. Users take turns. `is_finishing`: takes a
/// fifth of a second at the most, and leaves out all of users of whom one does not answer.
Mended mend_left_hooks(const Journal& journal, const JournalOwner& supervisor, const SilentProcesses& silent,
                       const Progress& progress, Mending mending, bool is_finishing = false);

}  // namespace rtev::enable
