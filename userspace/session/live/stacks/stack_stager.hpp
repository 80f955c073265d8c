// SPDX-License-Identifier: MIT
// Adds the stacks that BPF captured to the stream, unwound and named.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "kernel/stack_records.hpp"
#include "kernel/stack_source.hpp"
#include "processes/process_table.hpp"
#include "session/live/stacks/code_spaces.hpp"
#include "session/live/stacks/stack_namer.hpp"
#include "stream/records.hpp"
#include "stream/timeline.hpp"
#include "unwind/unwinder.hpp"

namespace rtev {

/// A sample is staged at once. Where the code of its process is not known yet, its stack is reserved in the registry
/// and set when the helper process has answered. Memory is bounded. One thread.
class StackStager {
 public:
  /// All must outlive it.
  struct Context {
    kernel::StackSource& source;
    ProcessQueries& readers;   ///< of mappings
    ProcessQueries& builders;  ///< of tables
    const ProcessTable& processes;
    Registry& registry;
    Timeline& timeline;
    std::function<std::uint64_t()> clock = monotonic_ns;
  };
  StackStager(const Context& context, KernelSymbols kernel_symbols);

  /// Takes stacks of this process from now on, if its program is known.
  void add_process(std::int32_t pid);
  /// The process has ended. Stage before: records of a process that is not traced any more are ignored.
  void forget(ProcessIndex process);

  /// Stages what waits.
  void stage(std::uint64_t now_ns);
  /// When stage() is due at the latest: soon after the start of a process, since its first stacks show where it has
  /// mapped libraries by then, and it must be asked for these while it runs.
  std::optional<std::uint64_t> next_look_ns() const { return next_look_ns_; }
  /// Stages the sleeps that last still. At the end, after the last stage().
  void end_sleeps(std::uint64_t now_ns);
  /// True while stacks are reserved, and since when.
  bool has_waiting() const { return !waiting_.empty(); }
  std::optional<std::uint64_t> waiting_since() const;
  /// Those that still wait stay unknown.
  void give_up();

  /// By SampleKind.
  using Dropped = std::array<std::uint64_t, static_cast<std::size_t>(last_sample_kind) + 1>;
  const Dropped& dropped() const { return dropped_; }
  /// How often the tables of a file were refused or cut: stacks may end in its code.
  std::uint64_t left_out_tables() const { return code_.left_out_tables(); }
  /// See RunSummary::unsampled.
  std::uint64_t unsampled() const { return unsampled_; }

 private:
  /// A stack whose code is not known yet.
  struct Waiting {
    StackIndex reserved;
    rtev_stack record;
    std::vector<std::byte> payload;
  };
  struct WaitingOfProcess {
    std::uint32_t user = 0;
    std::vector<Waiting> stacks{};
    std::size_t bytes = 0;
  };
  /// A thread that has gone to sleep.
  struct Sleeping {
    std::uint64_t left_ns;
    Sample sample;  ///< without its weight
  };

  void take(const rtev_stack& record, std::span<const std::byte> payload);
  void push(std::uint64_t time_ns, SampleKind kind, const Sample& sample);
  void stage_drops(std::uint64_t now_ns);
  void push_loss(LossReason reason, const Loss& loss);
  StackIndex stack_of(const rtev_stack& record, std::span<const std::byte> payload, const CodeSpaces::Process& process);
  /// Whether a stack that could not be followed to its end waits for an answer.
  enum class Retry : std::uint8_t { if_missing, never };
  std::optional<StackIndex> unwind(const rtev_stack& record, std::span<const std::byte> payload,
                                   const CodeSpaces::Process& process, Retry retry);
  StackIndex wait(const rtev_stack& record, std::span<const std::byte> payload, const CodeSpaces::Process& process);
  void on_known(ProcessIndex process);
  void keep(Waiting stack, const CodeSpaces::Process& process);
  void retry(ProcessIndex index, std::uint64_t final_until_ns);

  Context context_;
  std::set<ProcessIndex> sampled_;
  std::uint64_t unsampled_ = 0;
  CodeSpaces code_;
  Unwinder unwinder_;
  StackNamer namer_;
  std::map<ProcessIndex, WaitingOfProcess> waiting_;
  std::map<std::uint32_t, std::size_t> waiting_bytes_of_users_;
  std::size_t waiting_bytes_ = 0;
  std::unordered_map<std::int32_t, Sleeping> sleeping_;  ///< by tid
  std::uint64_t look_interval_ns_ = 0;
  std::optional<std::uint64_t> next_look_ns_{};
  std::uint64_t forgotten_until_ns_ = 0;  ///< threads that went to sleep before are forgotten
  Dropped dropped_{};
  // Of the stack in hand, to keep their memory.
  kernel::StackParts parts_;
  Unwound unwound_;
};

}  // namespace rtev
