// SPDX-License-Identifier: MIT
#include "formats/viewer/viewer_writer.hpp"

#include <sys/wait.h>

#include <concepts>

#include "base/escape.hpp"
#include "stream/user_fields.hpp"

namespace rtev {

void ViewerWriter::begin(const Track& track, const EventContext& context, const Flows& flows) {
  details_.clear();
  begin_span(track, named(context, details_of(context.event)), flows);
}

void ViewerWriter::end(const Track& track, const EventContext& context) {
  details_.clear();
  end_span(track, context.event.time, details_of(context.event));
}

void ViewerWriter::stray_end(const Track& track, const EventContext& context) {
  details_.clear();
  ViewerEvent event = named(context, details_of(context.event));
  name_ = std::string(event.name).append(" ended");
  event.name = name_;
  instant(&track, event);
}

void ViewerWriter::point(const Track& track, const EventContext& context) {
  const Event& event = context.event;
  details_.clear();
  switch (event.kind) {
    case EventKind::user_int:
    case EventKind::lifecycle:
      add("value", event.signed_value());
      break;
    case EventKind::user_custom:
      add_custom(known_name_of(event, context.registry), context.batch.payload(event));
      break;
    case EventKind::alloc:
      if (const auto buckets = context.batch.payload_as<decltype(buckets_)>(event)) {
        buckets_ = *buckets;
        add("buckets", std::span<const std::uint64_t>(buckets_));
      }
      break;
    default:
      break;
  }
  instant(&track, named(context, details_of(event)));
}

void ViewerWriter::lost(const Track& track, const EventContext& context, const Loss& loss) {
  details_.clear();
  add("domain", std::uint64_t{Source::unpack(context.event.source).domain});
  if (loss.words != 0) add("words", loss.words);  // else unknown
  if (loss.from_ns != 0) add("from", Timestamp{loss.from_ns});
  add("to", Timestamp{loss.to_ns});
  add("reason", to_string(static_cast<LossReason>(context.event.id)));
  instant(
      &track,
      {.time = context.event.time, .name = "lost", .category = Category::loss, .details = details_of(context.event)});
}

void ViewerWriter::dropped(const EventContext& context, const Loss& loss) {
  details_.clear();
  add("records", loss.words);
  add("from", Timestamp{loss.from_ns});
  add("to", Timestamp{loss.to_ns});
  instant(nullptr, {.time = context.event.time,
                    .name = "scheduler events dropped",
                    .category = Category::loss,
                    .details = details_of(context.event)});
}

void ViewerWriter::process(const Track& track, const EventContext& context, const ProcessRecord& record) {
  details_.clear();
  const auto action = static_cast<ProcessAction>(context.event.id);
  add_process(action, record, context.registry.process(record.process));
  instant(&track, {.time = context.event.time,
                   .name = to_string(action),
                   .category = Category::process,
                   .details = details_of(context.event)});
}

void ViewerWriter::malformed(const EventContext& context) {
  details_.clear();
  add("kind", to_string(context.event.kind));
  instant(
      nullptr,
      {.time = context.event.time, .name = "malformed event", .category = Category::recording, .details = details_});
}

void ViewerWriter::task_span(const Track& track, const TaskSpan& span) {
  details_.clear();
  if (span.creator) add("creator", *span.creator);
  if (!span.context.empty()) add("context", span.context);
  begin_span(track, {.time = span.begin_ns, .name = span.name, .category = Category::task, .details = details_},
             span.flows);
  end_span(track, span.end_ns, {});
}

void ViewerWriter::task_point(const Track& track, std::uint64_t time, std::string_view name, std::string_view text) {
  details_.clear();
  if (!text.empty()) add("text", text);
  instant(&track, {.time = time, .name = name, .category = Category::task, .details = details_});
}

void ViewerWriter::open(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
                        SpanMark mark) {
  details_.clear();
  add("begin", to_string(mark));
  begin_span(
      track,
      {.time = time, .name = name_of(begun, registry, name_), .category = category_of(begun), .details = details_}, {});
}

void ViewerWriter::close(const Track& track, std::uint64_t time, const Event& /*begun*/, const Registry& /*registry*/,
                         SpanMark mark) {
  details_.clear();
  add("end", to_string(mark));
  end_span(track, time, details_);
}

Category ViewerWriter::category_of(const Event& event) {
  switch (event.kind) {
    case EventKind::begin:
    case EventKind::end:
    case EventKind::counter:
      return Category::gc;
    case EventKind::alloc:
      return Category::alloc;
    case EventKind::lifecycle:
      return Category::lifecycle;
    default:
      return Category::user;
  }
}

void ViewerWriter::add_process(ProcessAction action, const ProcessRecord& record, const ProcessInfo& info) {
  switch (action) {
    case ProcessAction::fork:
      add("parent", std::int64_t{record.peer});
      [[fallthrough]];
    case ProcessAction::found:
    case ProcessAction::exec:
      add("exe", std::string_view{info.exe});
      if (!info.runtime.empty()) add("runtime", std::string_view{info.runtime});
      if (!info.version.empty()) add("version", std::string_view{info.version});
      add("family", to_string(info.family));
      add("ns_pid", std::int64_t{info.ns_pid});
      break;
    case ProcessAction::ring:
      add("path", std::string_view{info.ring_path});
      add("max_domains", record.detail);
      break;
    case ProcessAction::unreadable:
      add("path", std::string_view{info.ring_path});
      add("reason", to_string(static_cast<Unreadable>(record.detail)));
      break;
    case ProcessAction::enable:
      add("result", to_string(static_cast<EnableResult>(record.detail)));
      break;
    case ProcessAction::exit:
      add_exit(record.detail);
      break;
    case ProcessAction::pause:
    case ProcessAction::resume:
    case ProcessAction::stop:
    case ProcessAction::probe:
      break;
  }
}

void ViewerWriter::add_custom(std::string_view event, std::span<const std::byte> payload) {
  add("bytes", payload);
  const std::string_view text{reinterpret_cast<const char*>(payload.data()), payload.size()};
  if (const UserFields fields = user_fields(event, payload); !fields.empty()) {
    fields_.clear();
    add_user_fields(fields_, fields, text.size());
    add("fields", fields_.text());
  } else if (const UserIntegers integers = user_integers(payload); !integers.empty()) {
    fields_.clear();
    add_user_integers(fields_, integers);
    add("integers", fields_.text());
  } else if (is_printable(text)) {
    add("text", text);
  }
}

void ViewerWriter::add_exit(std::int64_t detail) {
  const int status = static_cast<int>(detail);
  if (detail == exit_by_exec) {
    add("exec", true);
  } else if (detail >= 0 && WIFSIGNALED(status)) {
    add("signal", std::int64_t{WTERMSIG(status)});
  } else if (detail >= 0) {
    add("code", std::int64_t{WEXITSTATUS(status)});
  }
}

/// Those added so far, and that the event is late.
Details ViewerWriter::details_of(const Event& event) {
  if (event.flags & flag_late) add("late", true);
  return details_;
}

ViewerEvent ViewerWriter::named(const EventContext& context, Details details) {
  return {.time = context.event.time,
          .name = name_of(context.event, context.registry, name_),
          .category = category_of(context.event),
          .details = details};
}

}  // namespace rtev
