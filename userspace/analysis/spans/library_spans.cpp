// SPDX-License-Identifier: MIT
#include "analysis/spans/library_spans.hpp"

#include <algorithm>

namespace rtev {
namespace {

using What = LibrarySpanEvent::What;

std::string_view span_name(const Event& event, const Batch& batch) {
  const auto bytes = batch.payload(event);
  return {reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), LibrarySpans::max_name_bytes)};
}

}  // namespace

std::optional<LibrarySpanEvent> LibrarySpans::add(const Event& event, const Batch& batch, const RingInfo& ring) {
  const bool may_be_one =
      event.kind == EventKind::user_unit || event.kind == EventKind::user_int || event.kind == EventKind::user_custom;
  if (!may_be_one || !ring.user_event_name) return std::nullopt;
  const std::string_view name = ring.user_event_name(event.id);
  if (name.starts_with("eio.")) return add_eio(name, event, batch, ring.process);
  if (event.kind != EventKind::user_custom) return std::nullopt;
  if (name == "trace.span.enter") return LibrarySpanEvent{.what = What::begin, .name = span_name(event, batch)};
  if (name == "trace.span.exit") return LibrarySpanEvent{.what = What::end, .name = span_name(event, batch)};
  return std::nullopt;
}

bool LibrarySpans::marks_span(std::string_view name) {
  return name == "eio.enter_span" || name == "eio.exit_span" || name == "trace.span.enter" || name == "trace.span.exit";
}

std::optional<LibrarySpanEvent> LibrarySpans::add_eio(std::string_view name, const Event& event, const Batch& batch,
                                                      ProcessIndex process) {
  const std::pair domain{process, Source::unpack(event.source).domain};
  if (event.kind == EventKind::user_int && name == "eio.fiber") {
    current_[domain] = event.signed_value();
    return std::nullopt;
  }
  if (event.kind == EventKind::user_int && name == "eio.exit_fiber")
    return LibrarySpanEvent{.what = What::exit, .fiber = event.signed_value()};
  const bool begins = event.kind == EventKind::user_custom && name == "eio.enter_span";
  if (!begins && (event.kind != EventKind::user_unit || name != "eio.exit_span")) return std::nullopt;
  const auto current = current_.find(domain);
  if (current == current_.end()) return std::nullopt;
  if (!begins) return LibrarySpanEvent{.what = What::end, .fiber = current->second};
  return LibrarySpanEvent{.what = What::begin, .fiber = current->second, .name = span_name(event, batch)};
}

}  // namespace rtev
