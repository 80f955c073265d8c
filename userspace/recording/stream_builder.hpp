// SPDX-License-Identifier: MIT
// Builds a stream from what is read of a file: batches for a sink, and a Registry in step with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stream/registry.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// Processes, rings and names are set before the events that refer to them. Before one of them changes, the batch so
/// far is given to the sink. Processes and rings have the same numbers as in the file. Memory is bounded: functions
/// return false beyond limits that no real recording reaches. One thread.
class StreamBuilder {
 public:
  explicit StreamBuilder(Sink& sink);
  StreamBuilder(const StreamBuilder&) = delete;
  StreamBuilder& operator=(const StreamBuilder&) = delete;
  ~StreamBuilder();

  /// Must be called first.
  void header(const RunHeader& header);

  /// Adds or changes a process image. `index` is not 0.
  [[nodiscard]] bool process(ProcessIndex index, ProcessInfo info);
  /// False if there is no such process, or no room.
  [[nodiscard]] bool service(ProcessIndex index, ServiceIdentity service);
  /// No further event refers to it.
  void forget_process(ProcessIndex index);
  /// Adds or changes a ring. `slot` is that of its events, 1 to ring_slots - 1; the process must be known.
  [[nodiscard]] bool ring(std::uint32_t slot, ProcessIndex process, std::uint32_t domains,
                          std::optional<Producer> producer);
  void forget_ring(std::uint32_t slot);
  /// Sets the name of a user event of rings with this slot; empty: it has none. It stays until it is changed, also for
  /// the next ring with the slot.
  [[nodiscard]] bool user_event(std::uint32_t slot, std::uint16_t id, std::string_view name);

  /// False beyond the limits of a StackTable.
  [[nodiscard]] bool frame(FrameIndex index, const StackFrame& frame) {
    return registry_.stacks().restore_frame(index, frame);
  }
  [[nodiscard]] bool stack(StackIndex index, StackIndex caller, FrameIndex frame) {
    return registry_.stacks().restore_stack(index, caller, frame);
  }
  /// A stack that follows later, if ever.
  [[nodiscard]] bool reserved_stack(StackIndex index) { return registry_.stacks().restore_reserved(index); }
  bool is_reserved(StackIndex index) const { return registry_.stacks().is_reserved(index); }

  /// Payloads are copied; Event::value is set for kinds that have one.
  void add(Event event, std::span<const std::byte> payload = {});
  /// Gives the batch to the sink, without Sink::flush().
  void hand_out();

  /// The processes of the summary of a recording.
  struct List {
    std::map<ProcessIndex, ProcessInfo> processes{};
    Registry::Others others{};
  };
  /// Ends the stream. Without a list the summary has the processes that are known now.
  void finish(const RunSummary& summary, std::optional<List> list = std::nullopt);
  /// The summary of a recording without its end, counted from the events.
  RunSummary counted() const { return counted_; }

  const Registry& registry() const { return registry_; }

  static constexpr std::size_t batch_events = 4096;
  static constexpr std::size_t batch_payload_bytes = std::size_t{1} << 20;
  /// Processes at a time, and the bytes of all their strings.
  static constexpr std::size_t max_processes = std::size_t{1} << 18;
  static constexpr std::size_t max_process_bytes = std::size_t{64} << 20;
  /// Bytes of the names of all user events.
  static constexpr std::size_t max_name_bytes = std::size_t{64} << 20;

 private:
  using Names = std::unordered_map<std::uint16_t, std::string>;
  /// The accounting of a ring or process, counted from its events.
  struct Counted {
    std::uint64_t events = 0, lost_words = 0;
  };
  struct Process {
    std::size_t bytes = 0;  ///< of its strings
    Counted counted{};
  };

  void count(const Event& event, std::span<const std::byte> payload);
  void count_drop(const Event& event, std::span<const std::byte> payload);
  void count_for_process(std::uint32_t slot);
  static void set_counted(Accounting& words, const Counted& counted);

  Sink& sink_;
  Registry registry_;
  std::vector<Event> events_;
  std::vector<std::byte> payloads_;
  std::map<ProcessIndex, Process> processes_;  ///< those not forgotten
  std::size_t process_bytes_ = 0;
  std::unordered_map<std::uint32_t, std::shared_ptr<Names>> names_;  ///< by slot
  std::size_t name_bytes_ = 0;
  std::vector<Counted> rings_;  ///< by slot; not yet added to the counts of their processes
  RunSummary counted_;
};

}  // namespace rtev
