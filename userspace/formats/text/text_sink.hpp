// SPDX-License-Identifier: MIT
// The stream for people: a line an event, aligned, indented by the nesting of spans, with durations where spans end.
#pragma once

#include <optional>
#include <variant>

#include "formats/line_sink.hpp"
#include "stream/span_tracker.hpp"
#include "stream/thread_tracker.hpp"

namespace rtev {

struct TextOptions {
  bool color = false;        ///< ANSI colours; nothing else is ever sent that controls a terminal
  std::uint64_t min_ns = 0;  ///< if not 0, only ends of spans that are as long, losses and processes have lines
  bool all_frames = false;   ///< of samples; else the innermost OCaml function
};

/// All spans of a ring nest in the text format.
using TextRing = SpanRing<std::monostate>;

class TextSink final : public LineSink, private SpanObserver<TextRing> {
 public:
  explicit TextSink(Output& output, TextOptions options = {}) : LineSink(output), options_(options) {}

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  /// Only hands everything to the Output: for people the figures go to stderr, see summary_text().
  void summary(const RunSummary& summary, const Registry& registry) override;

 private:
  struct Style {
    std::string_view color{};
    bool whole_line;  ///< or only the event
  };
  static constexpr std::string_view ansi_dim = "\x1b[2m", ansi_alarm = "\x1b[1;31m", ansi_cyan = "\x1b[36m",
                                    ansi_green = "\x1b[32m", ansi_blue = "\x1b[34m", ansi_normal = "\x1b[0m";
  static constexpr Style sched_style{ansi_dim, true};
  /// The columns left of the event.
  struct Line {
    std::uint64_t time = 0;
    std::int32_t pid = 0;  ///< 0 if unknown
    std::string_view comm{};
    std::int32_t domain = -1;
    std::size_t depth = 0;
  };

  void write(const Event& event, const Batch& batch, const Registry& registry);
  void begin_line(const Line& line, const Style& style);
  void finish_line(const Event& event, const Style& style);

  static Style ring_style(EventKind kind);
  void ring_event(const Event& event, const Batch& batch, const Registry& registry);
  void on_begin(TextRing& ring, Lane& lane, const EventContext& context) override;
  void on_end(TextRing& ring, Lane& lane, const Event& begin, const EventContext& context) override;
  void on_unknown_end(TextRing& ring, Lane& lane, const EventContext& context) override;
  void on_other(TextRing& ring, const EventContext& context) override;
  void describe(const Event& event, const Batch& batch, const Registry& registry);
  void name(const Event& event, const Registry& registry);
  void counter(const Event& event, const Registry& registry);
  void alloc(const Event& event, const Batch& batch);
  void lifecycle(const Event& event, const Registry& registry);
  void custom(std::string_view event, std::span<const std::byte> payload);
  void lost(const Event& event, const Batch& batch);

  void process_event(const Event& event, const Batch& batch, const Registry& registry);

  void switch_event(const Event& event, const Batch& batch);
  void after(const Event& event, const Thread& thread, bool was_on_cpu);
  void wakeup_event(const Event& event, const Batch& batch);
  void sample_event(const Event& event, const Batch& batch, const Registry& registry);
  void begin_thread_line(const Event& event, const Thread& thread);
  void finish_thread_line(const Event& event, const Thread& thread);
  void other_thread(const Thread& thread);

  TextOptions options_;
  std::uint64_t start_ns_ = 0;
  SpanTracker<TextRing> spans_{*this, {}};
  ThreadTracker threads_;
  std::size_t name_width_ = 15;               ///< grows with the names that are seen
  std::size_t depth_ = 0;                     ///< of the event in hand
  std::optional<std::uint64_t> duration_ns_;  ///< of the span that it ends
};

}  // namespace rtev
