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
}

inline void add_counts(JsonWriter& json, const RunSummary& summary) {
  json.key("events").object([&] {
    for (std::size_t kind = 0; kind < event_kind_count; ++kind)
      json.member(to_string(static_cast<EventKind>(kind)), summary.events[kind]);
  });
  json.member("late", summary.late);
  json.member("forced", summary.forced);
  json.member("rings_missed", summary.rings_missed);
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
    json.member("cpu_ns", summary.own_cpu_ns);
    json.member("max_rss_bytes", summary.own_max_rss_bytes);
  });
  if (!summary.complete) json.member("truncated", true);
}

inline void add_words(JsonWriter& json, const Accounting& words) {
  json.key("words").object([&] {
    json.member("written", words.written);
    json.member("delivered", words.delivered);
    json.member("lost", words.lost);
    json.member("before_attach", words.before_attach);
    json.member("corrupt", words.corrupt);
    json.member("unread", words.unread);
  });
}

}  // namespace rtev
