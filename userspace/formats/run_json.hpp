// SPDX-License-Identifier: MIT
// Members about a run that the formats in JSON have in common.
#pragma once

#include "base/json_writer.hpp"
#include "stream/sink.hpp"

namespace rtev {

inline void add_run(JsonWriter& json, const RunHeader& header) {
  json.member("version", header.version);
  json.member("host", header.host);
  json.member("kernel", header.kernel);
  json.member("machine", header.machine);
  json.values("command_line", header.command_line);
  json.member("clock", "monotonic");
  json.member("start", header.start_ns);
  json.member("start_realtime", header.start_realtime_ns);
  if (!header.not_recorded.selection.empty()) json.values("not_recorded", header.not_recorded.words());
}

inline void add_counts(JsonWriter& json, const RunSummary& summary) {
  json.key("events").object([&] {
    for (std::size_t kind = 0; kind < event_kind_count; ++kind)
      json.member(to_string(static_cast<EventKind>(kind)), summary.events[kind]);
  });
  const bool truncated = !summary.complete;
  json.member("late", summary.late);
  json.member("forced", known_count(summary.forced, truncated));
  json.member("rings_missed", known_count(summary.rings_missed, truncated));
  json.key("drops").object([&] {
    for (const RunSummary::Drop& drop : summary.drops) json.text_key(drop.kind).value(drop.count);
  });
  if (!summary.announcers.empty())
    json.key("announcers").array([&] {
      for (const RunSummary::Announcer& announcer : summary.announcers)
        json.object([&] {
          json.member("pid", announcer.pid);
          json.member("comm", announcer.comm);
          json.member("dropped", announcer.dropped);
        });
    });
  json.key("self").object([&] {
    // 0 is unknown, also of a part of a recording.
    json.member("cpu_ns", known_count(summary.own_cpu_ns, true));
    json.member("max_rss_bytes", known_count(summary.own_max_rss_bytes, true));
  });
  if (truncated) json.member("truncated", true);
}

inline void add_words(JsonWriter& json, const Accounting& words, bool truncated) {
  json.key("words").object([&] {
    json.member("written", known_count(words.written, truncated));
    json.member("delivered", known_count(words.delivered, truncated));
    json.member("lost", known_count(words.lost, truncated));
    json.member("before_attach", known_count(words.before_attach, truncated));
    json.member("corrupt", known_count(words.corrupt, truncated));
    json.member("unread", known_count(words.unread, truncated));
  });
}

}  // namespace rtev
