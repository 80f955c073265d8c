// SPDX-License-Identifier: MIT
// The stream as a person can follow it: a line for each long pause, long user span, stall and process event, and once a
// second a line for each program that sums up the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/pauses/pause_analyzer.hpp"
#include "analysis/stalls/stalls_sink.hpp"
#include "formats/brief/brief_sums.hpp"
#include "formats/line_sink.hpp"
#include "stream/span_tracker.hpp"
#include "stream/thread_selection.hpp"

namespace rtev {

struct BriefOptions {
  static constexpr std::uint64_t min_pause_ns = 1'000'000, min_span_ns = 10'000'000, min_stall_ns = 50'000'000;

  /// Shorter pauses and spans are only summed up, shorter stalls not shown. 0: the three values above.
  std::uint64_t min_ns = 0;
  ThreadSelection threads{};
  bool color = false;
  /// Lines are cut to so many columns; 0: they are not.
  std::size_t columns = 0;
};

/// User spans end by their own ends only.
using BriefRing = SpanRing<std::monostate>;

/// At most `max_lines` lines a second. What has no line of its own is in the line of its program. Memory is bounded.
/// One thread.
class BriefSink final : public LineSink, private PauseConsumer, private SpanObserver<BriefRing> {
 public:
  static constexpr std::size_t max_lines = 20;

  explicit BriefSink(Output& output, BriefOptions options = {});

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void advance(std::uint64_t time_ns, const Registry& registry) override;
  void summary(const RunSummary& summary, const Registry& registry) override;

 private:
  // Besides these there are a line of the other processes, and one of lost scheduler events.
  static constexpr std::size_t max_process_lines = 4, max_long_lines = 10, max_sums = 4;
  static constexpr std::size_t remembered_pauses = 64, max_name_width = 24;

  /// Something that has a line of its own.
  struct Line {
    std::uint64_t time_ns = 0;
    std::uint64_t length_ns = 0;
    std::string text{};  ///< without time, program and domain
    std::string_view color{};
    ProcessIndex process = 0;  ///< for the sums, if there is no room for the line
    std::int32_t domain = -1;  ///< -1: of none
    bool is_pause = false;
    std::string span{};  ///< the name of a user span
  };
  struct PauseTime {
    std::uint64_t begin_ns, end_ns;
  };
  /// Pauses of a domain, for its spans.
  struct Domain {
    std::deque<PauseTime> pauses{};  ///< the last ones
    std::uint64_t known_from_ns = 0;
  };

  void on_pause_details(PauseDetails&& pause) override;
  void on_unfinished(const DomainLife& /*domain*/, const PhaseEnd& /*root*/, Unfinished /*reason*/) override {}
  void on_words_lost(const DomainLife& /*domain*/, const Loss& /*loss*/) override {}
  Lane* lane_for(BriefRing& ring, const EventContext& context) override;
  void on_end(BriefRing& ring, Lane& lane, const Event& begin, const EventContext& context) override;
  void on_domain_end(BriefRing& ring, std::uint64_t time_ns) override;

  void add(const Event& event, const Batch& batch);
  void add_process(const Event& event, const Batch& batch);
  void add_loss(const Event& event, const Batch& batch);
  void add_stall(ProcessIndex process, const Stall& stall);
  void add_line(Line line);
  void sum_up(const Line& line);
  bool is_selected(std::int32_t pid, std::uint16_t domain) const;

  /// Removes the line of a pause that is at least half of a span, and returns its text.
  std::optional<std::string> take_pause(const Line& span, std::uint64_t end_ns);
  void end_second(std::uint64_t now_ns);
  void write_rest();
  /// Without a time: of the second that ends.
  void write_line(std::optional<std::uint64_t> of, std::string_view program, std::string_view text,
                  std::string_view color);
  std::uint64_t end_of_second(std::uint64_t time_ns) const;
  std::uint64_t least(std::uint64_t otherwise_ns) const {
    return options_.min_ns != 0 ? options_.min_ns : otherwise_ns;
  }

  BriefOptions options_;
  RunHeader header_{};
  const Registry* registry_ = nullptr;  ///< while events come
  PauseAnalyzer analyzer_{*this, std::size_t{8} << 20};
  SpanTracker<BriefRing> spans_{*this, {.open = std::size_t{1} << 16, .user_spans_overlap = true}};
  Stalls stalls_;
  std::unordered_map<std::uint64_t, Domain> domains_;  ///< by DomainLife::key()

  std::size_t name_width_ = 12;  ///< of the column of programs: the widest so far, up to max_name_width

  // Of the present second.
  std::uint64_t second_end_ns_ = 0;
  std::vector<Line> process_lines_, long_lines_;
  std::map<ProcessAction, std::uint64_t> other_process_events_;  ///< without a line
  BriefSums sums_;
  std::uint64_t lost_sched_events_ = 0;
};

}  // namespace rtev
