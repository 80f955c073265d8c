// SPDX-License-Identifier: MIT
// Makes a stream of what is read from a file: batches for a sink, and a Registry that is in step with them.
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

/// What every reader of recordings needs. Facts are told before the events that they are facts of, and may change: a
/// batch is handed out before facts change that its events refer to. Processes and rings keep the numbers that they
/// have in the file. Memory is bounded: what goes beyond any honest recording is refused (false). One thread.
class StreamBuilder {
 public:
  explicit StreamBuilder(Sink& sink);
  StreamBuilder(const StreamBuilder&) = delete;
  StreamBuilder& operator=(const StreamBuilder&) = delete;
  ~StreamBuilder();

  /// Comes first.
  void header(const RunHeader& header);

  /// A process image, or what is known of it now. `index` is not 0.
  [[nodiscard]] bool process(ProcessIndex index, ProcessInfo info);
  /// No further event refers to it.
  void forget_process(ProcessIndex index);
  /// A ring file under a slot that events carry, 1 to ring_slots - 1; the process is to be known before.
  [[nodiscard]] bool ring(std::uint32_t slot, ProcessIndex process, std::uint32_t domains,
                          std::optional<Producer> producer);
  void forget_ring(std::uint32_t slot);
  /// Name of a user event of the rings with this slot; empty if it has none (any more). It stands until it is told
  /// otherwise, also for the next ring that gets the slot.
  [[nodiscard]] bool user_event(std::uint32_t slot, std::uint16_t id, std::string_view name);
  void forget_user_events(std::uint32_t slot);

  /// Payloads are copied; Event::value is set for kinds that have one.
  void add(Event event, std::span<const std::byte> payload = {});
  /// Hands out what was added. The sink keeps it or not: see Sink::flush().
  void hand_out();

  /// What a recording says at its end of all processes that are to be listed, and of those that are not.
  struct List {
    std::map<ProcessIndex, ProcessInfo> processes{};
    Registry::Others others{};
  };
  /// Ends the stream; without a list the processes are those known, as far as they are known.
  void finish(const RunSummary& summary, std::optional<List> list = std::nullopt);
  /// For a recording that lacks its end: what can be told by its events.
  RunSummary counted() const { return counted_; }

  const Registry& registry() const { return registry_; }

  static constexpr std::size_t batch_events = 4096;
  static constexpr std::size_t batch_payload_bytes = std::size_t{1} << 20;
  /// Of processes known and listed at a time, and the bytes of all their strings.
  static constexpr std::size_t max_processes = std::size_t{1} << 18;
  static constexpr std::size_t max_process_bytes = std::size_t{64} << 20;
  /// Bytes of all names of user events.
  static constexpr std::size_t max_name_bytes = std::size_t{64} << 20;

 private:
  using Names = std::unordered_map<std::uint16_t, std::string>;
  /// What the events of a ring or process tell of its accounting.
  struct Counted {
    std::uint64_t events = 0, lost_words = 0;
  };
  struct Process {
    std::size_t bytes = 0;  ///< of its strings
    Counted counted{};
  };

  void count(const Event& event, std::span<const std::byte> payload);
  void count_for_process(std::uint32_t slot);
  void tell_counted(ProcessIndex index, const Counted& counted);

  Sink& sink_;
  Registry registry_;
  std::vector<Event> events_;
  std::vector<std::byte> payloads_;
  std::map<ProcessIndex, Process> processes_;  ///< those not forgotten
  std::size_t process_bytes_ = 0;
  std::unordered_map<std::uint32_t, std::shared_ptr<Names>> names_;  ///< by slot
  std::size_t name_bytes_ = 0;
  std::vector<Counted> rings_;  ///< by slot, as far as not counted for their processes
  RunSummary counted_;
};

}  // namespace rtev
