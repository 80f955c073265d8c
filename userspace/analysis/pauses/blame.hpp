// SPDX-License-Identifier: MIT
// What to blame for a pause: its largest part, which thread or domain caused it, and a sentence for the report.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "analysis/pauses/pause_details.hpp"
#include "stream/stacks.hpp"

namespace rtev {

/// The largest part of a pause.
enum class Cause : std::uint8_t {
  work,                ///< its own thread was on a cpu, outside of waits for other domains
  no_cpu,              ///< its own thread could run, but other threads had the cpu
  late_domain,         ///< waited for a domain to come to a stop-the-world section
  slow_domain,         ///< waited for a domain to end its part of a minor collection
  blocked_in_section,  ///< its own thread was blocked in a stop-the-world section, outside of the two waits above
  blocked,             ///< its own thread was blocked elsewhere
  unknown,             ///< it is unknown what its thread did
};
std::string_view to_string(Cause cause);

/// Why another domain was late or slow, or what a thread did is unknown.
enum class Why : std::uint8_t {
  none,           ///< neither, or no evidence
  no_cpu,         ///< its thread could run, but others had the cpu
  backup_thread,  ///< it was in a blocking section: its backup thread had to take part for it
  blocked,        ///< its thread was blocked
  leader,         ///< it leads the section itself, and took long to ask the others
  ran,            ///< its thread was on a cpu: a long way to a safepoint, or much work
  late_events,    ///< of Cause::unknown: runtime events of the pause came late
  lost_events,    ///< of Cause::unknown: scheduler events were lost
  unknown,
};
std::string_view to_string(Why why);

struct Blame {
  Cause cause = Cause::unknown;
  std::uint64_t ns = 0;  ///< how much of the pause
  Why why = Why::none;
  const PauseSection* part = nullptr;  ///< of late_domain and slow_domain: where the wait was longest
  const StwDomain* domain = nullptr;   ///< that was waited for there; null: unknown
};

/// Which switches the stream has: which thread had a cpu is certain only with all of them.
enum class SwitchesSeen : std::uint8_t { none, ocaml, all };

/// Phases in which domains wait for each other.
enum class Barriers : std::uint8_t { left_out, counted };

/// The phase with most time outside of those inside it; null if none is known.
const PhaseTree::Node* busiest_phase(const PauseDetails& pause, Barriers barriers);
/// The same; null unless it has half of the pause.
const PhaseTree::Node* main_phase(const PauseDetails& pause, Barriers barriers);

/// Of Cause::unknown, where there are scheduler events.
std::string_view unknown_reason(Why why);

/// Refers to the pause.
Blame blame_of(const PauseDetails& pause);

/// One sentence with the figures, without a full stop. Names of programs are escaped.
std::string blame_text(const PauseDetails& pause, const Blame& blame, SwitchesSeen seen, const StackTable& stacks);

}  // namespace rtev
