// SPDX-License-Identifier: MIT
// `rtev-bpf latency --span`: measures user spans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/latency/domain_time.hpp"
#include "analysis/limits.hpp"
#include "analysis/pause_finder.hpp"
#include "analysis/spans/library_spans.hpp"
#include "analysis/spans/spans_report.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// A span that ended, or whose end was not seen.
struct SpanEnd {
  ProcessIndex process = 0;
  std::string_view name{};  ///< as the program made it, or "#17" for a number without a name
  Span span{};              ///< of unknown length: only its domain and its begin are known
  std::optional<Unfinished> unfinished{};
};

struct SpansOptions {
  std::string pattern{};     ///< of names, with wildcards
  std::uint64_t min_ns = 0;  ///< shorter spans are only counted
  std::string input{};       ///< SpansReport::input
  bool full = false;         ///< SpansReport::full
  /// Called for each span of the pattern instead of keeping figures: there is no report then.
  std::function<void(const SpanEnd&)> on_span{};
};

/// A fold over the stream. A span begins and ends in one domain; an end belongs to the innermost span of its name that
/// is open there, of Eio's spans to the innermost one of its fiber. Memory is bounded. One thread.
class Spans final : public Sink, private PauseListener {
 public:
  explicit Spans(SpansOptions options) : options_(std::move(options)) {}
  ~Spans() override;

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void flush() override {}
  void summary(const RunSummary& summary, const Registry& registry) override;
  std::uint64_t scheduler_gaps() const override { return time_.inconsistent_switches(); }

  /// After summary(): the durations of spans, for limits.
  LimitedDurations limited() const;
  SpansReport report() const;
  std::string report_text() const { return spans_text(report()); }
  std::string report_json() const { return spans_json(report()); }

  static constexpr std::size_t max_groups = 512, max_open = 64, max_library_spans = 1024, max_slowest = 100,
                               max_other_names = 20;

 private:
  using GroupKey = std::pair<ProcessIndex, std::string>;
  using DomainKey = std::pair<ProcessIndex, std::uint16_t>;

  struct Open {
    std::uint32_t slot = 0;               ///< of its ring
    std::uint16_t event = 0;              ///< its id
    bool of_library = false;              ///< then it has a name instead of an event
    std::optional<std::int64_t> fiber{};  ///< LibrarySpanEvent::fiber
    std::string name{};
    bool late = false;
    std::uint64_t begin_ns = 0;
    DomainTime::Meter meter{};
    TimeSplit in_pauses{};
    std::uint64_t pauses = 0, longest_pause_ns = 0;
  };
  struct Domain {
    std::deque<Open> open{};  ///< innermost last
    std::optional<DomainTime::Meter> pause{};
  };

  void on_pause_begin(const DomainLife& life, const PhaseBegin& root) override;
  void on_pause_end(const DomainLife& life, const PhaseEnd& root) override;
  void on_pause_dropped(const DomainLife& life, const PhaseEnd& root, Unfinished reason) override;
  void on_domain_end(const DomainLife& life, std::uint64_t time_ns) override { drop(life, time_ns, Unfinished::ended); }
  void on_loss(const DomainLife& life, const Loss& loss) override;

  void begin(const Event& event, const RingInfo& ring);
  void end(const Event& event, const RingInfo& ring);
  void library_event(const Event& event, const RingInfo& ring, const LibrarySpanEvent& what);
  void open(const Event& event, const RingInfo& ring, Open span);
  void finish(const Event& event, const Open& span);
  /// Spans whose ends are not seen.
  void drop(const DomainLife& life, std::uint64_t time_ns, Unfinished reason);
  void miss(std::uint16_t domain, const Open& span, Unfinished reason);
  void hand_on(const Open& open, Span span, std::optional<Unfinished> unfinished);
  SpanGroup* group_of(const Open& span);
  static std::string name_of(const RingInfo& ring, std::uint16_t event);
  bool matches(const std::string& name);

  SpansOptions options_;
  PauseFinder finder_{*this};
  LibrarySpans libraries_;
  DomainTime time_;
  SampleHistory samples_;
  const StackTable* stacks_ = nullptr;   ///< those of the registry, once there was one
  std::map<DomainKey, Domain> domains_;  ///< with open spans, or a pause
  std::map<GroupKey, SpanGroup> groups_;
  std::set<std::string> other_names_;
  std::uint64_t ungrouped_ = 0;
  LostWords lost_;
  const Registry* registry_ = nullptr;  ///< while events come
  RunHeader header_{};
  std::uint64_t last_ns_ = 0;
  bool truncated_ = false;
  ReadProgramCount read_programs_;
  ReadPrograms read_;  ///< at the end, as is the next
  std::vector<Lack> lacks_;
};

}  // namespace rtev
