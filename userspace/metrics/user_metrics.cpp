// SPDX-License-Identifier: MIT
#include "metrics/user_metrics.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <optional>

#include "base/escape.hpp"

namespace rtev {
namespace {

constexpr std::size_t max_name_bytes = 64;

bool matches(const std::vector<std::string>& globs, const std::string& name) {
  return std::ranges::any_of(globs,
                             [&](const std::string& glob) { return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0; });
}

template <typename Map>
auto& entry_of(Map& map, const std::string& name) {
  if (map.size() < UserFigures::max_names || map.contains(name)) return map[name];
  return map["other"];
}

}  // namespace

UserMetrics::Wanted UserMetrics::judge(std::string_view name) const {
  const std::string whole(name);
  return {.name = escaped(name.substr(0, max_name_bytes)),
          .event = matches(options_.events, whole),
          .span = matches(options_.spans, whole),
          .value = matches(options_.values, whole)};
}

const UserMetrics::Wanted& UserMetrics::wanted(ProcessIndex process, std::uint16_t id, const RingInfo& ring) {
  const std::uint64_t key = std::uint64_t{process} << 16 | id;
  if (const auto known = wanted_.find(key); known != wanted_.end()) return known->second;
  const std::string_view name = ring.user_event_name ? ring.user_event_name(id) : std::string_view{};
  static const Wanted none;
  // A name may come after the first events that need it.
  if (name.empty()) return none;
  if (wanted_.size() >= max_wanted) wanted_.clear();
  return wanted_.emplace(key, judge(name)).first->second;
}

void UserMetrics::add(const Event& event, const Batch& batch, const RingInfo& ring, UserFigures& figures) {
  const std::pair place{ring.process, Source::unpack(event.source).domain};
  const auto open_here = [&]() -> OpenSpans<64>& {
    if (open_.size() >= max_open) open_.clear();
    return open_[place];
  };
  if (const auto what = libraries_.add(event, batch, ring)) {
    if (what->what == LibrarySpanEvent::What::begin) {
      open_here().begin(
          {.begin_ns = event.time, .of_library = true, .fiber = what->fiber, .name = std::string(what->name)});
    } else if (what->what == LibrarySpanEvent::What::end) {
      end(open_here().end(*what), event, ring, figures);
    } else {
      open_here().end_fiber(*what->fiber);
    }
    return;
  }
  if (event.kind == EventKind::user_end) return end(open_here().end(event.id), event, ring, figures);
  const Wanted& name = wanted(ring.process, event.id, ring);
  if (name.event) ++entry_of(figures.events, name.name);
  if (name.value && event.kind == EventKind::user_int) entry_of(figures.values, name.name) = event.signed_value();
  if (name.span && event.kind == EventKind::user_begin) open_here().begin({.event = event.id, .begin_ns = event.time});
}

void UserMetrics::end(const std::optional<OpenSpan>& span, const Event& event, const RingInfo& ring,
                      UserFigures& figures) {
  // The clock of the program may have gone back since its begin.
  if (!span || event.time < span->begin_ns) return;
  const Wanted name = span->of_library ? judge(span->name) : wanted(ring.process, span->event, ring);
  if (name.span) entry_of(figures.spans, name.name).record(event.time - span->begin_ns);
}

void UserMetrics::forget(ProcessIndex process, std::uint16_t domain) {
  open_.erase({process, domain});
  libraries_.forget(process, domain);
}

void UserMetrics::forget(ProcessIndex process) {
  const auto first = open_.lower_bound({process, 0}), last = open_.lower_bound({process + 1, 0});
  for (auto at = first; at != last; at = open_.erase(at)) libraries_.forget(process, at->first.second);
  std::erase_if(wanted_, [&](const auto& entry) { return entry.first >> 16 == process; });
}

}  // namespace rtev
