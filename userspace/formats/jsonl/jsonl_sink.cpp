// SPDX-License-Identifier: MIT
#include "formats/jsonl/jsonl_sink.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>

#include "formats/run_json.hpp"
#include "stream/recording_layout.hpp"
#include "stream/stack_json.hpp"
#include "stream/user_fields.hpp"

namespace rtev {
namespace {

constexpr int schema = 2;

/// "int" of user_int.
std::string_view user_kind(EventKind kind) {
  return to_string(kind).substr(std::string_view("user_").size());
}

void add_version(JsonWriter& json, const ProcessInfo& info) {
  json.member("runtime", info.runtime);
  json.text_or_null("version", info.version);
  json.member("family", to_string(info.family));
  json.member("family_source", to_string(info.family_source));
}

void add_exit_status(JsonWriter& json, std::int64_t detail) {
  const int status = static_cast<int>(detail);
  json.key("status");
  if (detail == exit_by_exec) {
    json.object([&] { json.member("exec", true); });
  } else if (detail < 0) {
    json.value(nullptr);
  } else if (WIFSIGNALED(status)) {
    json.object([&] { json.member("signal", WTERMSIG(status)); });
  } else {
    json.object([&] { json.member("code", WEXITSTATUS(status)); });
  }
}

void add_thread(JsonWriter& json, const Thread& thread) {
  json.member("pid", thread.pid);
  json.member("tid", thread.tid);
  json.member("comm", thread.comm());
}

void add_thread_details(JsonWriter& json, const Thread& thread) {
  if (thread.domain >= 0) json.member("domain", thread.domain);
  if (thread.role != ThreadRole::unknown) json.plain_member("role", to_string(thread.role));
  if (thread.holds_lock) json.member("lock", true);
  if (thread.tracked) json.member("tracked", true);
}

void add_figures(JsonWriter& json, const ProcessInfo& info, bool truncated) {
  json.member("pid", info.pid);
  json.member("comm", info.comm);
  json.member("exe", info.exe);
  json.member("exec_generation", info.exec_generation);
  json.member("runtime", info.runtime);
  json.text_or_null("version", info.version);
  json.member("family_source", to_string(info.family_source));
  json.member("ring", to_string(info.ring));
  json.member("domains", known_count(info.domains, truncated));
  json.key("max_rss_bytes");
  info.max_rss_bytes != 0 ? json.value(info.max_rss_bytes) : json.value(nullptr);
  add_words(json, info.words, truncated);
  json.member("events", info.words.events);
  if (info.missed.sum() != 0) json.member("rings_missed", info.missed.sum());
  if (info.left_alone.times == 0) return;
  json.key("left_alone").object([&] {
    json.member("times", info.left_alone.times);
    json.member("ns", info.left_alone.ns);
  });
}

}  // namespace

void JsonlSink::header(const RunHeader& header) {
  start_ns_ = header.start_ns;
  has_utc_ = header.start_realtime_ns != 0;
  utc_.set_origin(header.start_ns, header.start_realtime_ns);
  json_.object([&] {
    json_.plain_member("type", "header");
    json_.member("schema", schema);
    add_run(json_, header);
    if (!label_.empty()) json_.member("label", label_);
  });
  end_object_line();
}

void JsonlSink::consume(const Batch& batch, const Registry& registry) {
  for (const Event& event : batch.events()) {
    if (closed()) return;
    json_.begin_object();
    write(event, batch, registry);
    if (event.flags & flag_late) json_.member("late", true);
    json_.end_object();
    end_object_line();
  }
}

void JsonlSink::write(const Event& event, const Batch& batch, const Registry& registry) {
  switch (event.kind) {
    case EventKind::process:
      start(event, "process");
      if (const auto record = batch.payload_as<ProcessRecord>(event)) process(event, *record, registry);
      break;
    case EventKind::sched_switch:
      start(event, "switch");
      if (const auto change = batch.payload_as<SchedSwitch>(event)) sched_switch(*change);
      break;
    case EventKind::wakeup:
      start(event, "wakeup");
      if (const auto record = batch.payload_as<Wakeup>(event)) wakeup(*record);
      break;
    case EventKind::sample:
      start(event, "sample");
      if (const auto record = batch.payload_as<Sample>(event)) sample(event, *record, registry);
      break;
    default:
      record::group_of(event.kind) == EventKind::user_unit ? user(event, batch, registry)
                                                           : ring_event(event, batch, registry);
  }
}

void JsonlSink::start(const Event& event, std::string_view type) {
  json_.member("ts", event.time);
  if (has_utc_) {
    std::array<char, UtcTime::length> text;
    json_.plain_member("time", utc_.put(text, event.time));
  }
  json_.plain_member("type", type);
}

/// Which ring an event came from.
void JsonlSink::origin(const Event& event, const Registry& registry) {
  if (const ProcessInfo* info = registry.process_of(event)) {
    json_.member("pid", info->pid);
    json_.member("comm", info->comm);
  }
  const Source source = Source::unpack(event.source);
  if (source.slot != 0) json_.member("domain", source.domain);
}

void JsonlSink::ring_event(const Event& event, const Batch& batch, const Registry& registry) {
  start(event, to_string(event.kind));
  origin(event, registry);
  if (event.kind == EventKind::lost) {
    if (const auto loss = batch.payload_as<Loss>(event)) lost(event, *loss);
    return;
  }
  if (event.kind == EventKind::alloc) {
    json_.key("buckets").array([&] {
      const auto buckets = batch.payload_as<std::array<std::uint64_t, alloc_bucket_count>>(event);
      if (!buckets) return;
      for (const std::uint64_t count : *buckets) json_.value(count);
    });
    return;
  }
  const std::string_view name = known_name_of(event, registry);
  json_.text_or_null("name", name);
  if (name.empty()) json_.member("id", event.id);
  if (event.kind == EventKind::counter) {
    json_.member("value", event.value);
    const auto family = registry.family_of(event);
    const std::string_view unit = family ? counter_unit(*family, event.id) : std::string_view{};
    if (!unit.empty()) json_.plain_member("unit", unit);
  } else if (event.kind == EventKind::lifecycle) {
    json_.member("value", event.signed_value());
  }
}

void JsonlSink::lost(const Event& event, const Loss& loss) {
  const auto reason = static_cast<LossReason>(event.id);
  if (is_sched_loss(event)) {
    const std::uint16_t stream = Source::unpack(event.source).domain;
    json_.member("buffer", stream - std::min(stream, first_sched_stream));
  }
  const bool is_of_words = reason != LossReason::dropped && !lost_samples(reason);
  json_.member(is_of_words ? "words" : "records", known_count(loss.words, true));
  json_.key("from");
  loss.from_ns != 0 ? json_.value(loss.from_ns) : json_.value(nullptr);
  json_.member("to", loss.to_ns);
  json_.plain_member("reason", to_string(reason));
}

void JsonlSink::user(const Event& event, const Batch& batch, const Registry& registry) {
  start(event, "user");
  origin(event, registry);
  const std::string_view name = known_name_of(event, registry);
  json_.text_or_null("name", name);
  json_.member("id", event.id);
  json_.plain_member("kind", user_kind(event.kind));
  if (event.kind == EventKind::user_int) json_.member("value", event.signed_value());
  if (event.kind == EventKind::user_custom) custom(name, batch.payload(event));
}

void JsonlSink::custom(std::string_view event, std::span<const std::byte> payload) {
  json_.hex("bytes", payload);
  const std::string_view text{reinterpret_cast<const char*>(payload.data()), payload.size()};
  if (const UserFields fields = user_fields(event, payload); !fields.empty()) {
    json_.key("fields").object([&] {
      for (const UserField& field : fields)
        std::visit([&](auto value) { json_.member(field.name, value); }, field.value);
    });
  } else if (const UserIntegers integers = user_integers(payload); !integers.empty()) {
    // As text: readers that hold numbers as doubles would change identifiers beyond 2^53.
    json_.key("integers").array([&] {
      for (const std::int64_t number : integers) json_.value(std::string_view(fmt::format_int(number).c_str()));
    });
  } else if (is_printable(text)) {
    json_.member("text", text);
  }
}

void JsonlSink::process(const Event& event, const ProcessRecord& record, const Registry& registry) {
  const ProcessInfo& info = registry.process(record.process);
  const auto action = static_cast<ProcessAction>(event.id);
  json_.plain_member("action", to_string(action));
  json_.member("pid", info.pid);
  json_.member("comm", info.comm);
  switch (action) {
    case ProcessAction::fork:
      json_.member("parent", record.peer);
      [[fallthrough]];
    case ProcessAction::found:
    case ProcessAction::exec:
      json_.member("exe", info.exe);
      if (!info.script.empty()) json_.member("script", info.script);
      add_version(json_, info);
      json_.member("ns_pid", info.ns_pid);
      json_.member("start_ticks", info.start_ticks);
      json_.member("exec_generation", info.exec_generation);
      if (!info.service.name.empty()) json_.member("service", info.service.name);
      if (!info.service.version.empty()) json_.member("service_version", info.service.version);
      break;
    case ProcessAction::ring:
      json_.member("path", info.ring_path);
      add_version(json_, info);  // of a stripped program it is known only now
      json_.member("max_domains", record.detail);
      break;
    case ProcessAction::exit:
      add_exit_status(json_, record.detail);
      if (info.max_rss_bytes != 0) json_.member("max_rss_bytes", info.max_rss_bytes);
      break;
    case ProcessAction::unreadable:
      json_.member("path", info.ring_path);
      json_.plain_member("reason", to_string(static_cast<Unreadable>(record.detail)));
      break;
    case ProcessAction::enable:
      json_.plain_member("result", to_string(static_cast<EnableResult>(record.detail)));
      break;
    case ProcessAction::pause:
    case ProcessAction::resume:
    case ProcessAction::stop:
    case ProcessAction::probe:
      break;
  }
}

void JsonlSink::sched_switch(const SchedSwitch& change) {
  json_.member("cpu", change.cpu);
  json_.key("prev").object([&] {
    add_thread(json_, change.prev);
    json_.member("prio", change.prev.priority);
    json_.plain_member("state", to_string(change.state));
    if (change.syscall != Syscall::unknown) json_.plain_member("syscall", to_string(change.syscall));
    add_thread_details(json_, change.prev);
  });
  json_.key("next").object([&] {
    add_thread(json_, change.next);
    json_.member("prio", change.next.priority);
    add_thread_details(json_, change.next);
  });
}

void JsonlSink::wakeup(const Wakeup& wakeup) {
  add_thread(json_, wakeup.woken);
  json_.member("cpu", wakeup.cpu);
  add_thread_details(json_, wakeup.woken);
  json_.key("by").object([&] {
    add_thread(json_, wakeup.by);
    add_thread_details(json_, wakeup.by);
  });
}

void JsonlSink::sample(const Event& event, const Sample& sample, const Registry& registry) {
  const auto kind = static_cast<SampleKind>(event.id);
  json_.plain_member("kind", to_string(kind));
  json_.member("pid", sample.pid);
  json_.member("comm", registry.process(sample.process).comm);
  json_.member("tid", sample.tid);
  if (sample.domain >= 0) json_.member("domain", sample.domain);
  if (sample.role != ThreadRole::unknown) json_.plain_member("role", to_string(sample.role));
  if (sample.holds_lock) json_.member("lock", true);
  json_.member("cpu", sample.cpu);
  if (kind != SampleKind::allocation)
    json_.member("ns", sample.weight);
  else if (sample.weight != 0)
    json_.member("words", sample.weight);
  add_stack(json_.key("stack"), registry.stacks(), sample.stack);
}

void JsonlSink::summary(const RunSummary& summary, const Registry& registry) {
  const bool truncated = !summary.complete;
  json_.object([&] {
    json_.plain_member("type", "summary");
    json_.member("end", summary.end_ns);
    json_.member("duration_ns", summary.end_ns - std::min(summary.end_ns, start_ns_));
    add_counts(json_, summary);
    json_.key("processes").array([&] {
      for (const ProcessInfo& info : registry.processes()) json_.object([&] { add_figures(json_, info, truncated); });
    });
    json_.key("others").object([&] {
      json_.member("processes", registry.others().count);
      add_words(json_, registry.others().words, truncated);
      json_.member("events", registry.others().words.events);
    });
  });
  end_object_line();
  flush();
}

/// Lines are separate documents: no comma between them.
void JsonlSink::end_object_line() {
  json_.restart();
  end_line();
}

}  // namespace rtev
