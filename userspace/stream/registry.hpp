// SPDX-License-Identifier: MIT
// Who is who in the stream: process images and ring files by the small numbers that events carry.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rtev/event.hpp"
#include "rtev/names.hpp"
#include "rtev/ring_reader.hpp"
#include "stream/records.hpp"

namespace rtev {

/// Slots for ring files. Slot 0 stands for no ring, so at most one less can be open at once.
inline constexpr std::uint32_t ring_slots = 16384;

/// The versions of OCaml a family stands for: "5.0-5.2" or "5.3+".
std::string_view to_string(Family family);

/// `shared` with a process of another pid namespace that has the same pid and directory: both write into one file, and
/// their events cannot be distinguished. This state is final.
/// `probed`: none, and its events come from probes.
/// `stopped`: taken down by its runtime; `ended`: its process ended, and its runtime did not come to that.
enum class RingState : std::uint8_t { none, active, paused, stopped, truncated, shared, probed, ended };
std::string_view to_string(RingState state);
/// What the end of its process makes of a ring.
RingState after_end(RingState state);

/// How a process's decode family was decided.
enum class FamilySource : std::uint8_t { assumed, symbols, ring, producer, forced };
std::string_view to_string(FamilySource source);

/// ProcessInfo::runtime of an OCaml program.
inline constexpr std::string_view ocaml_runtime = "ocaml";

/// One image of one process: a pid between two execs. Strings are whatever the process made them: escape them.
struct ProcessInfo {
  std::int32_t pid = 0;               ///< tgid in the tracer's pid namespace
  std::int32_t ns_pid = 0;            ///< in its own, innermost namespace
  std::uint64_t start_ticks = 0;      ///< field 22 of /proc/PID/stat: with pid, the identity of the process
  std::uint32_t exec_generation = 0;  ///< counts the execs seen
  std::string comm;
  std::string exe;
  std::string runtime{ocaml_runtime};  ///< who writes its newest ring: OCaml's runtime, or a Producer's name
  std::string version;                 ///< OCaml's, "5.3"; empty if the binary does not contain it
  Family family = Family::since_5_3;
  FamilySource family_source = FamilySource::assumed;
  RingState ring = RingState::none;
  std::string ring_path;  ///< as the process's mappings name it
  bool ended = false;
  /// Peak resident memory, as the kernel counts it; set at its end, or at the end of the run. 0: unknown.
  std::uint64_t max_rss_bytes = 0;
  Accounting words;           ///< of all rings this image had, as of its last poll
  std::uint32_t domains = 0;  ///< rings that held events
};

/// One ring file.
struct RingInfo {
  ProcessIndex process = 0;
  std::uint32_t domains = 0;
  /// Who writes it, if not OCaml's runtime.
  std::optional<Producer> producer{};
  /// Name of a user event; may be empty.
  std::function<std::string_view(std::uint16_t)> user_event_name{};
};

/// Filled by discovery, asked by sinks and analyses. Used from one thread. Processes stay for the final summary; beyond
/// `remembered` retired ones the oldest are folded into others().
class Registry {
 public:
  static constexpr std::size_t remembered = 4096;

  Registry() = default;
  Registry(Registry&&) noexcept = default;
  Registry& operator=(Registry&&) noexcept = default;

  /// Indices are never re-used; 0 is no process.
  ProcessIndex add_process(ProcessInfo facts);
  /// References stay valid until the process is retired. An unknown index (also of a forgotten process) yields
  /// an ended process without a name: an error in bookkeeping must not crash a program that runs as root.
  ProcessInfo& process(ProcessIndex index);
  const ProcessInfo& process(ProcessIndex index) const;
  /// For an ended image, once no event in flight refers to it: allows it to be folded into others(), not before its
  /// last ring is removed.
  void retire_process(ProcessIndex index);

  /// A slot for a ring file, 1 to ring_slots - 1; 0 when all are taken. Freed slots are given out as late as possible.
  /// Who writes the ring becomes a fact of its process.
  std::uint32_t add_ring(RingInfo facts);
  /// Null for a free slot. Valid until the next add_ring() or remove_ring().
  const RingInfo* ring(std::uint32_t slot) const;
  void remove_ring(std::uint32_t slot);

  /// The process behind an event from a ring; null for events of slot 0.
  const ProcessInfo* process_of(const Event& event) const {
    const std::uint32_t slot = Source::unpack(event.source).slot;
    return slot < rings_.size() && rings_[slot] && rings_[slot]->owner ? &rings_[slot]->owner->facts : nullptr;
  }

  /// The table that the ids of an event from a ring are read by; nothing for events of slot 0.
  std::optional<Family> family_of(const Event& event) const;

  /// Everything seen, in the order it was first seen: running, ended and remembered. A range of const ProcessInfo&.
  auto processes() const { return processes_ | std::views::values | std::views::transform(&Entry::facts); }
  /// The same, each with its index.
  auto indexed_processes() const {
    return processes_ | std::views::transform([](const auto& process) {
             return std::pair<ProcessIndex, const ProcessInfo&>(process.first, process.second.facts);
           });
  }
  /// Ended processes that are not remembered one by one.
  struct Others {
    std::uint64_t count = 0;
    Accounting words;
  };
  const Others& others() const { return others_; }

  // For a stream that is read back from a file, with the numbers it has there. Not to be mixed with add_process() and
  // add_ring().
  /// Makes a process known under this index, which is not 0 nor UINT32_MAX, or changes what is known of it.
  void restore_process(ProcessIndex index, ProcessInfo facts);
  /// Makes a ring file known under this slot, 1 to ring_slots - 1, or changes what is known of it. Changes no fact of
  /// its process.
  void restore_ring(std::uint32_t slot, RingInfo facts);
  /// Makes these the processes that are listed; others are forgotten, with their rings.
  void restore_list(std::map<ProcessIndex, ProcessInfo> list, const Others& others);

 private:
  struct Entry {
    ProcessInfo facts;
    std::uint32_t rings = 0;  ///< that refer to it
    bool retired = false;
  };
  struct Ring {
    RingInfo facts;
    ProcessIndex index;
    Entry* owner;  ///< nodes of a map do not move
  };

  void remember_retired(ProcessIndex index);
  void place_ring(std::uint32_t slot, RingInfo facts);
  void revive(ProcessIndex index);

  std::map<ProcessIndex, Entry> processes_;
  std::deque<ProcessIndex> retired_;  ///< oldest first, without rings
  ProcessIndex next_index_ = 1;
  std::vector<std::optional<Ring>> rings_{1};
  std::deque<std::uint32_t> free_slots_;  ///< freed longest ago first
  Others others_;
  ProcessInfo nobody_;
};

/// The name an event carries, resolved with its process's tables; empty where the id is unknown.
std::string_view known_name_of(const Event& event, const Registry& registry);

/// The same, but "#17" where the id is unknown. `scratch` holds the text where it had to be made.
std::string_view name_of(const Event& event, const Registry& registry, std::string& scratch);

}  // namespace rtev
