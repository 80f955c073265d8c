// SPDX-License-Identifier: MIT
// Base of the formats that are made for viewers only: it decides how each event looks, and they write it down.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text_buffer.hpp"
#include "formats/viewer/trace_writer.hpp"

namespace rtev {

/// Groups of events that viewers can filter by.
enum class Category : std::uint8_t { gc, user, alloc, lifecycle, process, loss, recording, task };
inline constexpr std::array<std::string_view, 8> category_names{"gc",      "user", "alloc",     "lifecycle",
                                                                "process", "loss", "recording", "task"};

/// Names of what viewers show of an event when it is selected. "begin" and "end": why a span begins or ends although no
/// event says so.
inline constexpr std::array<std::string_view, 30> detail_names{
    "value", "bytes",  "buckets", "late", "begin",   "end",     "domain", "words",    "records", "from",
    "to",    "reason", "parent",  "exe",  "runtime", "version", "family", "ns_pid",   "path",    "max_domains",
    "exec",  "signal", "code",    "kind", "result",  "text",    "fields", "integers", "creator", "context"};

/// One of them. Any other name does not compile.
struct DetailName {
  std::size_t index;
  consteval DetailName(const char* name)
      : index(static_cast<std::size_t>(std::ranges::find(detail_names, name) - detail_names.begin())) {
    if (index == detail_names.size()) throw "no such name";
  }
};

constexpr std::string_view to_string(Category category) {
  return category_names[static_cast<std::size_t>(category)];
}
constexpr std::string_view to_string(DetailName name) {
  return detail_names[name.index];
}

/// CLOCK_MONOTONIC in ns, for formats that write times in another way than numbers.
struct Timestamp {
  std::uint64_t ns;
};

/// What a viewer shows when an event is selected. Texts and ranges are valid during the call that hands them over.
struct Detail {
  using Value = std::variant<bool, std::uint64_t, std::int64_t, std::string_view, Timestamp, std::span<const std::byte>,
                             std::span<const std::uint64_t>>;
  DetailName name;
  Value value;
};
using Details = std::span<const Detail>;

/// An event as viewers show it.
struct ViewerEvent {
  std::uint64_t time;  ///< ns
  std::string_view name;
  Category category;
  Details details{};
};

class ViewerWriter : public TraceWriter {
 protected:
  /// Begins and ends nest on each track. Arrows leave or reach the span that begins.
  virtual void begin_span(const Track& track, const ViewerEvent& event, const Flows& flows) = 0;
  virtual void end_span(const Track& track, std::uint64_t time, Details details) = 0;
  /// A point in time on a track; null: of the whole recording.
  virtual void instant(const Track* track, const ViewerEvent& event) = 0;

  void begin(const Track& track, const EventContext& context, const Flows& flows) override;
  void end(const Track& track, const EventContext& context) override;
  void stray_end(const Track& track, const EventContext& context) override;
  void point(const Track& track, const EventContext& context) override;
  void lost(const Track& track, const EventContext& context, const Loss& loss) override;
  void dropped(const EventContext& context, const Loss& loss) override;
  void process(const Track& track, const EventContext& context, const ProcessRecord& record) override;
  /// Viewers show stacks only in ways of their own.
  void sample(const EventContext&, const Sample&, const Track*) override {}
  void malformed(const EventContext& context) override;
  void task_span(const Track& track, const TaskSpan& span) override;
  void task_point(const Track& track, std::uint64_t time, std::string_view name, std::string_view text) override;
  void open(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
            SpanMark mark) override;
  void close(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
             SpanMark mark) override;

  static Category category_of(const Event& event);

 private:
  void add(DetailName name, const Detail::Value& value) { details_.push_back({.name = name, .value = value}); }
  void add_process(ProcessAction action, const ProcessRecord& record, const ProcessInfo& info);
  void add_custom(std::string_view event, std::span<const std::byte> payload);
  void add_exit(std::int64_t detail);
  Details details_of(const Event& event);
  ViewerEvent named(const EventContext& context, Details details);

  // Of the event in hand; here to keep their memory, and because the compiler clears local arrays.
  std::vector<Detail> details_;
  std::array<std::uint64_t, alloc_bucket_count> buckets_{};
  std::string name_;   ///< if it had to be made
  TextBuffer fields_;  ///< of a payload, as text
};

}  // namespace rtev
