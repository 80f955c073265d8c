// SPDX-License-Identifier: MIT
// The reports of `rtev-bpf profile` and `rtev-bpf allocs` as data, as text and as JSON.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/profile/call_tree.hpp"
#include "analysis/spans/span_condition.hpp"
#include "stream/not_recorded.hpp"
#include "stream/records.hpp"

namespace rtev {

/// What the table of a report has a row for.
enum class ProfileBy : std::uint8_t { function, line, domain, process, program, gc_phase, user_span };
/// "function", "gc-phase", ...
std::string_view to_string(ProfileBy by);

/// Of the weights of a report.
enum class WeightUnit : std::uint8_t { ns, bytes, samples };
std::string_view to_string(WeightUnit unit);

using SampleValues = std::array<SampleValue, sample_sides>;
inline SampleValue sum_of(const SampleValues& values) {
  SampleValue sum = values[0];
  return sum += values[1];
}

/// Samples of one node of the tree that are of one domain.
struct ProfileEntry {
  CallTree::Index node = 0;
  std::uint32_t process = 0;  ///< in ProfileReport::processes
  std::int32_t domain = -1;   ///< -1: unknown, or a thread without one
  std::uint32_t label = 0;    ///< in ProfileReport::labels
  SampleSide side = SampleSide::others;
  bool in_gc = false;
  SampleValue value{};
};

/// A function, or a line.
struct ProfileRow {
  CallTree::Index place = 0;   ///< of a function: where most of its samples are
  SampleValues self{};         ///< of stacks that end there. What the GC does belongs to the OCaml function it runs in
  SampleValues total{};        ///< of stacks that have it, once a stack
  SampleValue gc{};            ///< of `self`, in the GC
  CallTree::Index caller = 0;  ///< of a line of `allocs`: from where it is called most; 0: unknown
  CallTree::Index called = 0;  ///< off CPU: the place in C that it called and waits in most; 0: unknown
};

/// A domain, a process, a phase or a span.
struct ProfileGroup {
  std::string name{};  ///< escape it
  SampleValue value{};
  CallTree::Index hottest = 0;  ///< place of the function with most samples
  SampleValue in_hottest{};
};

struct ProfileProcess {
  std::int32_t pid = 0;  ///< 0: unknown
  std::string comm{};
  std::string program{};  ///< see program_key()
  SampleValue value{};
};

/// Where most of the weight is: of an OCaml function and all that it calls which is not OCaml.
struct ProfileHottest {
  CallTree::Index place = 0;  ///< of the function; 0: there are no samples
  SampleValues value{};
  SampleValue at_place{};                   ///< of it, at this line of the function
  std::optional<CallTree::Index> inner{};   ///< what it called for most of it, if that is C, the kernel or the GC
  std::optional<CallTree::Index> caller{};  ///< in which place of another function it is called most
  SampleValue in_caller{};
};

/// The OCaml function with most time, its own and of what it calls, that does not hand nearly all of it on to another
/// OCaml function.
struct ProfileMain {
  CallTree::Index place = 0;                ///< where most of that is; 0: there is none
  SampleValue total{};                      ///< of the function
  std::optional<CallTree::Index> caller{};  ///< in which place of another function it is called most
};

/// Of `allocs`: where most of the CPU time of allocations directly in the major heap is.
struct LargeBlocks {
  CallTree::Index place = 0;   ///< 0: there are no samples
  CallTree::Index caller = 0;  ///< 0: unknown
  std::uint64_t samples = 0, of_samples = 0;
};

/// Of `allocs`: what the counters of the rings say.
struct AllocatedMemory {
  std::optional<std::uint64_t> minor_bytes{};  ///< in the minor heaps; nothing if no counter was seen
  std::optional<std::uint64_t> major_bytes{};  ///< directly in the major heap: at sites that are not known
  std::uint64_t domains = 0;                   ///< with samples
  std::uint64_t domains_without_counter = 0;   ///< of these
};

struct ProfileReport {
  std::string version{};  ///< of rtev-bpf
  std::string host{};     ///< empty: unknown
  std::vector<std::string> command_line{};
  std::uint64_t run_ns = 0;                ///< when tracing began, CLOCK_MONOTONIC
  std::uint64_t run_realtime_ns = 0;       ///< CLOCK_REALTIME then; 0: unknown
  std::uint64_t start_ns = 0, end_ns = 0;  ///< of what is reported
  bool truncated = false;                  ///< the end of the recording is missing: totals of what was lost are unknown
  NotRecorded not_recorded{};
  SampleKind kind = SampleKind::on_cpu;
  ProfileBy by = ProfileBy::function;
  std::optional<SpanCondition> in{};  ///< the samples of SampleSide::inside lie in these
  bool of_recording = false;
  std::string input{};  ///< the recording as an argument of a shell; empty: none, or it has no such name
  bool full = false;
  WeightUnit unit = WeightUnit::ns;
  SampleValues all{};
  SampleValue gc{};                                ///< of all
  std::uint64_t incomplete = 0;                    ///< samples whose stack lacks its outer part
  std::uint64_t cut = 0;                           ///< of these: since that was not copied
  std::uint64_t unknown_process = 0;               ///< samples
  std::uint64_t dropped = 0;                       ///< samples of its kind that are missing
  std::uint64_t undecided = 0;                     ///< samples of spans whose length is unknown; in no figure
  std::uint64_t without_room = 0;                  ///< samples whose stacks were not kept
  std::array<std::uint64_t, 3> samples_of_kind{};  ///< in the stream, by SampleKind
  std::uint64_t process_count = 0;                 ///< OCaml's, with samples or without
  std::uint64_t cpu_ns = 0;                        ///< of theirs, as far as their switches were seen without a sample
  bool switches_seen = false;
  bool all_slept = false;   ///< their switches and wakeups were traced, and there are none
  bool has_pauses = false;  ///< the stream has runtime phases
  CallTree tree;
  std::vector<ProfileEntry> entries{};
  std::vector<ProfileProcess> processes{};  ///< the first one is unknown
  std::vector<std::string> labels{};        ///< escape them
  std::vector<ProfileRow> functions{};      ///< most weight first; of a comparison: most difference first
  std::vector<ProfileRow> lines{};          ///< the same, only with ProfileBy::line and of `allocs`
  std::vector<ProfileGroup> groups{};       ///< of other ProfileBy; most weight first
  ProfileHottest hottest{};
  ProfileMain main{};
  AllocatedMemory memory{};
  LargeBlocks large_blocks{};
  std::vector<std::string> other_names{};  ///< of spans that did not match, some

  /// The samples that trees and files show: those inside, if there is a comparison.
  SampleSide shown_side() const { return in ? SampleSide::inside : SampleSide::others; }
  /// So few that shares say nothing. Each sleep has a sample: those are not estimates.
  bool has_few() const { return kind != SampleKind::off_cpu && shown(all).samples < few; }
  static constexpr std::uint64_t few = 10;
  const SampleValue& shown(const SampleValues& values) const { return values[static_cast<std::size_t>(shown_side())]; }
};

/// Nodes that allocated blocks directly in the major heap, with samples on a CPU in these allocations.
using LargeBlockNodes = std::vector<std::pair<CallTree::Index, SampleValue>>;
/// Fills functions, lines, groups, hottest and large_blocks from the tree, which is summed up, and the entries.
void add_rows(ProfileReport& report, const LargeBlockNodes& large_blocks);

/// For people. It fits a terminal unless report.full.
std::string profile_text(const ProfileReport& report);
std::string allocs_text(const ProfileReport& report);
/// One JSON object, schema 1, in one line, with its end. docs/json.md documents the schema.
std::string profile_json(const ProfileReport& report);
std::string allocs_json(const ProfileReport& report);

}  // namespace rtev
