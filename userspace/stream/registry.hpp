// SPDX-License-Identifier: MIT
// Metadata of the stream: process images and ring files by the numbers that events carry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/program_names.hpp"
#include "base/service_identity.hpp"
#include "rtev/event.hpp"
#include "rtev/names.hpp"
#include "rtev/ring_reader.hpp"
#include "stream/records.hpp"
#include "stream/shown_names.hpp"
#include "stream/stacks.hpp"

namespace rtev {

/// Slots for ring files. Slot 0 means "no ring", so ring_slots - 1 files can be open at a time.
inline constexpr std::uint32_t ring_slots = 16384;

/// The OCaml versions of a family: "5.0-5.2" or "5.3+".
std::string_view to_string(Family family);

enum class RingState : std::uint8_t {
  none,
  active,
  paused,
  stopped,  ///< removed by its runtime
  truncated,
  shared,      ///< written by two processes with the same pid and directory, in different pid namespaces; final state
  probed,      ///< there is no ring: events come from probes
  ended,       ///< its process ended before the runtime removed it
  unreadable,  ///< it is not read, see Unreadable
};
std::string_view to_string(RingState state);
/// The state of a ring after its process ended.
RingState after_end(RingState state);

/// Where a process's family is known from.
enum class FamilySource : std::uint8_t { assumed, symbols, ring, producer, forced };
std::string_view to_string(FamilySource source);

/// ProcessInfo::runtime of an OCaml program.
inline constexpr std::string_view ocaml_runtime = "ocaml";

/// Rings that an image announced and that were not read to their end, by reason: see RunSummary::rings_missed.
struct MissedRings {
  std::uint64_t file_system = 0, no_answer = 0, memory = 0, other_user = 0, too_large = 0;  ///< by Unreadable
  std::uint64_t gone = 0;                                                                   ///< or unusable

  std::uint64_t sum() const { return file_system + no_answer + memory + other_user + too_large + gone; }
  bool operator==(const MissedRings&) const = default;
};

/// How often and how long rings of an image were not read, because they had corrupt words or their file was being
/// changed.
struct LeftAlone {
  std::uint64_t times = 0, ns = 0;

  bool operator==(const LeftAlone&) const = default;
};

/// A process image: a pid between two execs. The process chooses the strings: escape them.
struct ProcessInfo {
  std::int32_t pid = 0;               ///< tgid in the tracer's pid namespace
  std::int32_t ns_pid = 0;            ///< in the process's own, innermost namespace
  std::uint64_t start_ticks = 0;      ///< field 22 of /proc/PID/stat: with pid, the identity of the process
  std::uint32_t exec_generation = 0;  ///< counts the execs seen
  std::string comm;
  std::string exe;
  std::string script;     ///< see ProgramNames
  std::string name;       ///< what people are shown, set by the Registry: see ShownNames; not in recordings
  bool replaced = false;  ///< by an exec: another image of the process follows. Set by the Registry; not in recordings
  std::string runtime{ocaml_runtime};  ///< writer of its newest ring: OCaml's runtime, or a Producer's name
  std::string version;                 ///< of OCaml, e.g. "5.3"; empty if the binary does not contain it
  Family family = Family::since_5_3;
  FamilySource family_source = FamilySource::assumed;
  RingState ring = RingState::none;
  std::string ring_path;  ///< as in the process's mappings
  ServiceIdentity service;
  bool ended = false;
  /// Peak resident memory as the kernel counts it, set when the process or the run ends. 0: unknown.
  std::uint64_t max_rss_bytes = 0;
  Accounting words;           ///< of all rings of this image, as of the last poll
  std::uint32_t domains = 0;  ///< rings that held events
  MissedRings missed;
  LeftAlone left_alone;
  std::uint32_t user = 0;  ///< see charged_user(); not in recordings

  ProgramNames names() const { return {.comm = comm, .exe = exe, .script = script}; }
};

/// True if nothing differs but figures that change with each poll: the ends of runs and recordings have those.
bool same_but_figures(const ProcessInfo& one, const ProcessInfo& other);

/// One ring file.
struct RingInfo {
  ProcessIndex process = 0;
  std::uint32_t domains = 0;
  /// The writer, if it is not OCaml's runtime.
  std::optional<Producer> producer{};
  /// Name of a user event; may be empty.
  std::function<std::string_view(std::uint16_t)> user_event_name{};
};

/// Filled by discovery, read by sinks and analyses. Not thread-safe. Keeps processes for the final summary; of more
/// than `remembered` retired processes the oldest of the user with most of them are added up in others().
class Registry {
 public:
  static constexpr std::size_t remembered = 4096;
  /// A freed slot is not used again before so many others, as long as there are unused ones. It need not be long: what
  /// is kept by slot takes memory for each slot that was ever used.
  static constexpr std::size_t reused_after = 4096;

  Registry() = default;
  Registry(Registry&&) noexcept = default;
  Registry& operator=(Registry&&) noexcept = default;

  /// Indices are never reused; 0 is no process.
  ProcessIndex add_process(ProcessInfo info);
  /// References are valid until the process is retired. An unknown index (also of a process in others()) gives an ended
  /// process without a name: an error in bookkeeping must not crash a program that runs as root.
  ProcessInfo& process(ProcessIndex index);
  const ProcessInfo& process(ProcessIndex index) const;
  /// Allows an ended image to be added to others(), after its last ring is removed. Call it when no more events refer
  /// to the image.
  void retire_process(ProcessIndex index);

  /// A slot for a ring file, 1 to ring_slots - 1; 0 if all are used. See reused_after.
  /// Stores the ring's writer in the info of its process.
  std::uint32_t add_ring(RingInfo info);
  /// Null for a free slot. Valid until the next add_ring() or remove_ring().
  const RingInfo* ring(std::uint32_t slot) const {
    const Ring* const known = find_ring(slot);
    return known != nullptr ? &known->info : nullptr;
  }
  void remove_ring(std::uint32_t slot);

  /// The process of an event from a ring; null for events of slot 0.
  const ProcessInfo* process_of(const Event& event) const {
    const Ring* const ring = find_ring(Source::unpack(event.source).slot);
    return ring != nullptr && ring->owner != nullptr ? &ring->owner->info : nullptr;
  }

  /// The table for the ids of an event from a ring; nothing for events of slot 0.
  std::optional<Family> family_of(const Event& event) const {
    const Ring* const ring = find_ring(Source::unpack(event.source).slot);
    if (ring == nullptr || ring->owner == nullptr) return std::nullopt;
    const ProcessInfo& process = ring->owner->info;
    const auto& producer = ring->info.producer;
    return producer && process.family_source != FamilySource::forced ? producer->family : process.family;
  }

  /// The processes that are kept, in the order of their indices. A range of const ProcessInfo&.
  auto processes() const { return processes_ | std::views::values | std::views::transform(&Entry::info); }
  /// The same, each with its index.
  auto indexed_processes() const {
    return processes_ | std::views::transform([](const auto& process) {
             return std::pair<ProcessIndex, const ProcessInfo&>(process.first, process.second.info);
           });
  }
  /// Sums over the ended images that are not kept.
  struct Others {
    std::uint64_t count = 0;     ///< of processes: without images that were replaced
    std::uint64_t replaced = 0;  ///< images that others of their process have replaced
    Accounting words;
  };
  const Others& others() const { return others_; }
  /// Processes that were ever known: a process is counted once, however many programs it ran.
  std::uint64_t process_count() const {
    return others_.count + static_cast<std::uint64_t>(std::ranges::count(processes(), false, &ProcessInfo::replaced));
  }

  /// The stacks of samples. They outlive the processes they were taken of.
  StackTable& stacks() { return stacks_; }
  const StackTable& stacks() const { return stacks_; }

  // For a stream that is read from a file, with the numbers it has there. Not to be mixed with add_process() and
  // add_ring().
  /// Adds or replaces the process of this index, which is neither 0 nor UINT32_MAX.
  void restore_process(ProcessIndex index, ProcessInfo info);
  /// Adds or replaces the ring file of this slot, 1 to ring_slots - 1. Does not change the info of its process.
  void restore_ring(std::uint32_t slot, RingInfo info);
  /// Replaces the processes; removes the rings of all others.
  void restore_list(std::map<ProcessIndex, ProcessInfo> list, const Others& others);

 private:
  struct Entry {
    ProcessInfo info;
    std::uint32_t rings = 0;  ///< number of rings that refer to it
    bool retired = false;
  };
  struct Ring {
    RingInfo info;
    ProcessIndex index;
    Entry* owner;  ///< nodes of a map do not move
  };

  /// Inline, like what uses it: called for each event.
  const Ring* find_ring(std::uint32_t slot) const {
    if (slot >= rings_.size()) return nullptr;
    const std::optional<Ring>& ring = rings_[slot];
    return ring ? &*ring : nullptr;
  }
  void remember_retired(ProcessIndex index);
  void place_ring(std::uint32_t slot, RingInfo info);
  void revive(ProcessIndex index);
  void name(ProcessInfo& info);
  void mark_replaced(ProcessIndex index);
  void forget_image(ProcessIndex index, std::int32_t pid);

  std::map<ProcessIndex, Entry> processes_;
  std::unordered_map<std::int32_t, ProcessIndex> last_images_;  ///< of processes_, by pid
  std::map<std::uint32_t, std::deque<ProcessIndex>> retired_;   ///< by user; oldest first, without rings
  std::size_t retired_count_ = 0;
  ProcessIndex next_index_ = 1;
  std::vector<std::optional<Ring>> rings_{1};
  std::deque<std::uint32_t> free_slots_;  ///< freed longest ago first
  Others others_;
  ShownNames names_;
  StackTable stacks_;
  ProcessInfo unknown_;  ///< for process() with an unknown index
};

/// The name of an event's id, by the tables of its process; empty if the id is unknown.
std::string_view known_name_of(const Event& event, const Registry& registry);

/// The same, but "#17" if the id is unknown; the result may refer to `scratch`.
std::string_view name_of(const Event& event, const Registry& registry, std::string& scratch);

}  // namespace rtev
