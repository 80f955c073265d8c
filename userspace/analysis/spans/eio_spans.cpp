// SPDX-License-Identifier: MIT
#include "analysis/spans/eio_spans.hpp"

#include <algorithm>
#include <string_view>

namespace rtev {

std::optional<FiberEvent> EioSpans::add(const Event& event, const Batch& batch, const RingInfo& ring) {
  using What = FiberEvent::What;
  const bool is_number = event.kind == EventKind::user_int, is_text = event.kind == EventKind::user_custom;
  if ((!is_number && !is_text && event.kind != EventKind::user_unit) || !ring.user_event_name) return std::nullopt;
  const std::string_view name = ring.user_event_name(event.id);
  if (!name.starts_with("eio.")) return std::nullopt;
  const std::pair domain{ring.process, Source::unpack(event.source).domain};
  if (is_number && name == "eio.fiber") {
    current_[domain] = event.signed_value();
    return std::nullopt;
  }
  if (is_number && name == "eio.exit_fiber") return FiberEvent{.what = What::exit, .fiber = event.signed_value()};
  const bool begins = is_text && name == "eio.enter_span";
  if (!begins && (event.kind != EventKind::user_unit || name != "eio.exit_span")) return std::nullopt;
  const auto current = current_.find(domain);
  if (current == current_.end()) return std::nullopt;
  FiberEvent found{.what = begins ? What::begin : What::end, .fiber = current->second};
  if (begins) {
    const auto bytes = batch.payload(event);
    found.name.assign(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), max_name_bytes));
  }
  return found;
}

}  // namespace rtev
