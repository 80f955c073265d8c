// SPDX-License-Identifier: MIT
#include "formats/jsonl/jsonl_sink.hpp"

#include <sys/wait.h>

#include <algorithm>

#include "base/escape.hpp"

namespace rtev {
namespace {

constexpr int schema = 1;

std::string_view user_kind(EventKind kind) {
  switch (kind) {
    case EventKind::user_int:
      return "int";
    case EventKind::user_begin:
      return "begin";
    case EventKind::user_end:
      return "end";
    case EventKind::user_custom:
      return "custom";
    default:
      return "unit";
  }
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void JsonlSink::header(const RunHeader& header) {
  start_ns_ = header.start_ns;
  out_.add(R"({"type":"header","schema":)", schema);
  text("version", header.version);
  text("host", header.host);
  text("kernel", header.kernel);
  out_.add(R"(,"command_line":[)");
  for (std::size_t i = 0; i < header.command_line.size(); ++i) {
    if (i > 0) out_.add(',');
    add_json_string(out_, header.command_line[i]);
  }
  out_.add(R"(],"clock":"monotonic","start":)", header.start_ns, R"(,"start_realtime":)", header.start_realtime_ns,
           '}');
  end_line();
}

void JsonlSink::consume(const Batch& batch, const Registry& registry) {
  for (const Event& event : batch.events()) {
    if (closed()) return;
    write(event, batch, registry);
    if (event.flags & flag_late) out_.add(R"(,"late":true)");
    out_.add('}');
    end_line();
  }
}

void JsonlSink::write(const Event& event, const Batch& batch, const Registry& registry) {
  switch (event.kind) {
    case EventKind::begin:
    case EventKind::end:
    case EventKind::counter:
    case EventKind::alloc:
    case EventKind::lifecycle:
    case EventKind::lost:
      ring_event(event, batch, registry);
      return;
    case EventKind::user_unit:
    case EventKind::user_int:
    case EventKind::user_begin:
    case EventKind::user_end:
    case EventKind::user_custom:
      user(event, batch, registry);
      return;
    case EventKind::process:
      start(event, "process");
      if (const auto record = batch.payload_as<ProcessRecord>(event)) process(event, *record, registry);
      return;
    case EventKind::sched_switch:
      start(event, "switch");
      if (const auto change = batch.payload_as<SchedSwitch>(event)) {
        out_.add(R"(,"cpu":)", change->cpu, R"(,"prev":{)");
        thread(change->prev);
        out_.add(R"(,"prio":)", change->prev.priority);
        text("state", to_string(change->state));
        thread_details(change->prev);
        out_.add(R"(},"next":{)");
        thread(change->next);
        out_.add(R"(,"prio":)", change->next.priority);
        thread_details(change->next);
        out_.add('}');
      }
      return;
    case EventKind::wakeup:
      start(event, "wakeup");
      if (const auto wakeup = batch.payload_as<Wakeup>(event)) {
        out_.add(',');
        thread(wakeup->woken);
        out_.add(R"(,"cpu":)", wakeup->cpu);
        thread_details(wakeup->woken);
        out_.add(R"(,"by":{)");
        thread(wakeup->by);
        thread_details(wakeup->by);
        out_.add('}');
      }
      return;
  }
}

void JsonlSink::start(const Event& event, std::string_view type) {
  out_.add(R"({"ts":)", event.time, R"(,"type":")", type, '"');
}

void JsonlSink::ring_origin(const Event& event, const Registry& registry) {
  if (const ProcessInfo* info = registry.process_of(event)) {
    out_.add(R"(,"pid":)", info->pid);
    text("comm", info->comm);
  }
  const Source source = Source::unpack(event.source);
  if (source.slot != 0) out_.add(R"(,"domain":)", source.domain);
}

void JsonlSink::ring_event(const Event& event, const Batch& batch, const Registry& registry) {
  start(event, to_string(event.kind));
  ring_origin(event, registry);
  if (event.kind == EventKind::lost) {
    if (const auto loss = batch.payload_as<Loss>(event)) {
      const auto reason = static_cast<LossReason>(event.id);
      if (const Source source = Source::unpack(event.source); source.slot == 0)
        out_.add(R"(,"buffer":)", source.domain - std::min(source.domain, first_sched_stream));
      out_.add(reason == LossReason::dropped ? R"(,"records":)" : R"(,"words":)", loss->words, R"(,"from":)");
      if (loss->from_ns != 0) {
        out_.add(loss->from_ns);
      } else {
        out_.add("null");
      }
      out_.add(R"(,"to":)", loss->to_ns);
      text("reason", to_string(reason));
    }
  } else if (event.kind == EventKind::alloc) {
    out_.add(R"(,"buckets":[)");
    if (const auto buckets = batch.payload_as<std::array<std::uint64_t, alloc_bucket_count>>(event)) {
      out_.add(buckets->front());
      for (std::size_t i = 1; i < buckets->size(); ++i) out_.add(',', (*buckets)[i]);
    }
    out_.add(']');
  } else {
    name_or_id(event, registry);
    if (event.kind == EventKind::counter) {
      out_.add(R"(,"value":)", event.value);
      const auto family = registry.family_of(event);
      const std::string_view unit = family ? counter_unit(*family, event.id) : std::string_view{};
      if (!unit.empty()) text("unit", unit);
    } else if (event.kind == EventKind::lifecycle) {
      out_.add(R"(,"value":)", event.signed_value());
    }
  }
}

void JsonlSink::name_or_id(const Event& event, const Registry& registry) {
  const std::string_view name = known_name_of(event, registry);
  text_or_null("name", name);
  if (name.empty()) out_.add(R"(,"id":)", event.id);
}

void JsonlSink::user(const Event& event, const Batch& batch, const Registry& registry) {
  start(event, "user");
  ring_origin(event, registry);
  text_or_null("name", known_name_of(event, registry));
  out_.add(R"(,"id":)", event.id, R"(,"kind":")", user_kind(event.kind), '"');
  if (event.kind == EventKind::user_int) out_.add(R"(,"value":)", event.signed_value());
  if (event.kind == EventKind::user_custom) {
    out_.add(R"(,"bytes":")");
    out_.add_hex(as_text(batch.payload(event)));
    out_.add('"');
  }
}

void JsonlSink::process(const Event& event, const ProcessRecord& record, const Registry& registry) {
  const ProcessInfo& info = registry.process(record.process);
  const auto action = static_cast<ProcessAction>(event.id);
  text("action", to_string(action));
  out_.add(R"(,"pid":)", info.pid);
  text("comm", info.comm);
  switch (action) {
    case ProcessAction::fork:
      out_.add(R"(,"parent":)", record.peer);
      [[fallthrough]];
    case ProcessAction::found:
    case ProcessAction::exec:
      text("exe", info.exe);
      text("runtime", info.runtime);
      text_or_null("version", info.version);
      text("family", to_string(info.family));
      text("family_source", to_string(info.family_source));
      out_.add(R"(,"ns_pid":)", info.ns_pid, R"(,"start_ticks":)", info.start_ticks, R"(,"exec_generation":)",
               info.exec_generation);
      break;
    case ProcessAction::ring:
      text("path", info.ring_path);
      text("runtime", info.runtime);
      // By now known also of programs that were not when they began.
      text_or_null("version", info.version);
      text("family", to_string(info.family));
      text("family_source", to_string(info.family_source));
      out_.add(R"(,"max_domains":)", record.detail);
      break;
    case ProcessAction::exit: {
      const int status = static_cast<int>(record.detail);
      if (record.detail == exit_by_exec) {
        out_.add(R"(,"status":{"exec":true})");
      } else if (record.detail >= 0 && WIFSIGNALED(status)) {
        out_.add(R"(,"status":{"signal":)", WTERMSIG(status), '}');
      } else if (record.detail >= 0) {
        out_.add(R"(,"status":{"code":)", WEXITSTATUS(status), '}');
      } else {
        out_.add(R"(,"status":null)");
      }
      if (info.max_rss_bytes != 0) out_.add(R"(,"max_rss_bytes":)", info.max_rss_bytes);
      break;
    }
    case ProcessAction::pause:
    case ProcessAction::resume:
    case ProcessAction::stop:
    case ProcessAction::probe:
      break;
  }
}

void JsonlSink::thread(const Thread& thread) {
  out_.add(R"("pid":)", thread.pid, R"(,"tid":)", thread.tid);
  text("comm", thread.comm());
}

void JsonlSink::thread_details(const Thread& thread) {
  if (thread.domain >= 0) out_.add(R"(,"domain":)", thread.domain);
  if (thread.role != ThreadRole::unknown) text("role", to_string(thread.role));
  if (thread.holds_lock) out_.add(R"(,"lock":true)");
  if (thread.tracked) out_.add(R"(,"tracked":true)");
}

void JsonlSink::summary(const RunSummary& summary, const Registry& registry) {
  const std::uint64_t duration = summary.end_ns > start_ns_ ? summary.end_ns - start_ns_ : 0;
  out_.add(R"({"type":"summary","end":)", summary.end_ns, R"(,"duration_ns":)", duration, R"(,"events":{)");
  for (std::size_t kind = 0; kind < event_kind_count; ++kind) {
    if (kind > 0) out_.add(',');
    out_.add('"', to_string(static_cast<EventKind>(kind)), R"(":)", summary.events[kind]);
  }
  out_.add(R"(},"late":)", summary.late, R"(,"forced":)", summary.forced, R"(,"rings_missed":)", summary.rings_missed,
           R"(,"drops":{)");
  for (std::size_t i = 0; i < summary.drops.size(); ++i) {
    if (i > 0) out_.add(',');
    add_json_string(out_, summary.drops[i].kind);
    out_.add(':', summary.drops[i].count);
  }
  out_.add(R"(},"processes":[)");
  bool first = true;
  for (const ProcessInfo& info : registry.processes()) {
    if (!first) out_.add(',');
    first = false;
    process_figures(info);
  }
  out_.add(R"(],"others":{"processes":)", registry.others().count);
  words(registry.others().words);
  out_.add(R"(},"self":{"cpu_ns":)", summary.own_cpu_ns, R"(,"max_rss_bytes":)", summary.own_max_rss_bytes, '}');
  if (!summary.complete) out_.add(R"(,"truncated":true)");
  out_.add('}');
  end_line();
  flush();
}

void JsonlSink::process_figures(const ProcessInfo& info) {
  out_.add(R"({"pid":)", info.pid);
  text("comm", info.comm);
  text("exe", info.exe);
  out_.add(R"(,"exec_generation":)", info.exec_generation);
  text("runtime", info.runtime);
  text_or_null("version", info.version);
  text("family_source", to_string(info.family_source));
  text("ring", to_string(info.ring));
  out_.add(R"(,"domains":)", info.domains);
  if (info.max_rss_bytes != 0) {
    out_.add(R"(,"max_rss_bytes":)", info.max_rss_bytes);
  } else {
    out_.add(R"(,"max_rss_bytes":null)");
  }
  words(info.words);
  out_.add('}');
}

void JsonlSink::words(const Accounting& words) {
  out_.add(R"(,"words":{"written":)", words.written, R"(,"delivered":)", words.delivered, R"(,"lost":)", words.lost,
           R"(,"before_attach":)", words.before_attach, R"(,"corrupt":)", words.corrupt, R"(,"unread":)", words.unread,
           R"(},"events":)", words.events);
}

void JsonlSink::text(std::string_view key, std::string_view value) {
  out_.add(R"(,")", key, R"(":)");
  add_json_string(out_, value);
}

void JsonlSink::text_or_null(std::string_view key, std::string_view value) {
  if (value.empty()) {
    out_.add(R"(,")", key, R"(":null)");
  } else {
    text(key, value);
  }
}

}  // namespace rtev
