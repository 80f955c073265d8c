// SPDX-License-Identifier: MIT
// Sinks that hand only some events to another sink: --events, and for streams that were recorded -p, -n, and the
// options of a window.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rtev/error.hpp"
#include "stream/sink.hpp"
#include "stream/window.hpp"

namespace rtev {

/// Events to show: kinds ("phase", "counter", "alloc", "lifecycle", "user", "process", "switch", "wakeup",
/// "sample"), and names of OCaml's events or of user events, exact ("minor", "ring_start", "request") or with wildcards
/// ("minor*"). A word that is not a kind is a name: programs can name user events as they like. Losses are always
/// shown.
class EventFilter {
 public:
  /// From a list separated by commas; an empty word is an error.
  static Result<EventFilter> parse(std::string_view list);

  bool accepts(const Event& event, const Registry& registry);
  /// Adds what it leaves out.
  void add_to(NotRecorded& not_recorded) const;

  /// The words for kinds.
  static const std::vector<std::string>& all_kinds();
  /// The words of the list that are names.
  const std::vector<std::string>& names() const { return names_; }
  /// Words that matched no event so far: those that are names, and if no event at all was accepted those that are
  /// kinds, too.
  std::vector<std::string> unmatched() const;
  /// Whether there were events at all, accepted or not.
  bool has_seen_any() const { return has_seen_any_; }
  using Names = std::map<std::string_view, std::set<std::string, std::less<>>>;  ///< by the word for their kind
  static constexpr std::size_t max_others = 256;                                 ///< names
  /// Some names of events that were not accepted while a word was unmatched: of user events whatever programs made
  /// them.
  const Names& others() const { return others_; }

 private:
  bool accepts_name(std::string_view name);
  /// Without its cache, and without an effect.
  bool matches(const std::string& name) const;
  void remember(EventKind kind, std::string_view name);

  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::string list_;
  std::array<bool, event_kind_count> kinds_{};
  std::vector<std::string> kind_words_;
  std::vector<std::string> names_;  ///< all words that are no kinds, as they are
  std::vector<bool> matched_;       ///< by name of names_
  std::size_t unmatched_ = 0;       ///< names that are not matched_
  bool has_accepted_ = false;       ///< an event that is no loss
  bool has_seen_any_ = false;
  Names others_;
  std::unordered_set<std::string, Hash, std::equal_to<>> remembered_;      ///< all names in others_
  std::vector<std::size_t> patterns_;                                      ///< those with wildcards, by index
  std::unordered_map<std::string, bool, Hash, std::equal_to<>> verdicts_;  ///< of the patterns, by name
};

/// Hands on the accepted events. Its summary counts these only.
class PartialSink : public ForwardingSink {
 public:
  using ForwardingSink::ForwardingSink;

 protected:
  void hand_on(std::span<const std::byte> payloads, const Registry& registry);
  /// The summary, with the counts of the events that were handed on.
  RunSummary counted(RunSummary summary) const;

  std::vector<Event> accepted_;  ///< of the batch

 private:
  std::array<std::uint64_t, event_kind_count> events_{};
  std::uint64_t late_ = 0;
};

/// Hands on the events that an EventFilter accepts.
class FilterSink final : public PartialSink {
 public:
  FilterSink(Sink& sink, EventFilter filter) : PartialSink(sink), filter_(std::move(filter)) {}

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void summary(const RunSummary& summary, const Registry& registry) override;

  const EventFilter& filter() const { return filter_; }

 private:
  EventFilter filter_;
};

struct SelectionOptions {
  std::vector<std::int32_t> pids{};       ///< only these; empty: all
  std::vector<std::string> name_globs{};  ///< of -n: see base/name_globs.hpp
  Window window{};
  /// For an analysis: also scheduler events of all other threads, which had the CPUs, and which processes there were
  /// before the window. Without a summary, and so without a report, if there is a missed_run().
  bool for_analysis = false;
};

/// When a run was, by CLOCK_MONOTONIC, and by CLOCK_REALTIME at its start (0: unknown).
struct RunSpan {
  std::uint64_t start_ns = 0, end_ns = 0, start_realtime_ns = 0;
};

/// Hands on the events of selected processes, and the scheduler events of their threads. If the scheduler events of all
/// threads were recorded (--sched all), hands on all of them from the first event of a selected process on, as live
/// tracing does. Where no process matches, there is neither a header nor a summary, so that no report is made.
class Selection final : public PartialSink {
 public:
  Selection(Sink& sink, SelectionOptions options) : PartialSink(sink), options_(std::move(options)) {}

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void summary(const RunSummary& summary, const Registry& registry) override;

  /// True if processes were to be selected, and none was.
  bool is_empty() const { return !all_processes() && !has_selected_; }
  /// Of the options those that no process matched.
  std::vector<std::int32_t> unmatched_pids() const;
  std::vector<std::string> unmatched_globs() const;
  /// Names, whatever the programs made them, and ids of some processes.
  using Processes = std::set<std::pair<std::string, std::int32_t>>;
  const Processes& processes() const { return processes_; }
  /// After the summary, if all of the run was before the window, or after it: the run.
  const std::optional<RunSpan>& missed_run() const { return missed_run_; }
  /// Of the stream that it selects from.
  const NotRecorded& not_recorded() const { return not_recorded_; }

 private:
  static constexpr std::size_t max_processes = 100;

  void begin();
  bool all_processes() const { return options_.pids.empty() && options_.name_globs.empty(); }
  bool is_in_window(const Event& event) const;
  bool accepts(const Event& event, const Batch& batch, const Registry& registry);
  bool accepts(const ProcessInfo& info);
  bool accepts(const SchedSwitch& change);
  void note(const ProcessInfo& info);
  void untrack_others(const Event& event, const Batch& batch);

  SelectionOptions options_;
  std::optional<RunHeader> header_;  ///< before it is handed on
  Window::Bounds bounds_{};
  std::set<std::int32_t> selected_;  ///< pids
  bool has_selected_ = false;
  std::set<std::int32_t> noted_;  ///< pids that were compared with all options
  std::set<std::int32_t> matched_pids_;
  std::set<std::string> matched_globs_;
  Processes processes_;
  RunSpan run_{};
  std::optional<RunSpan> missed_run_;
  NotRecorded not_recorded_;
  bool sees_all_ = false;            ///< a switch of two untracked threads was seen: the stream has all switches
  std::vector<std::byte> payloads_;  ///< of the batch, if some had to be changed
};

}  // namespace rtev
