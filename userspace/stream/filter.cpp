// SPDX-License-Identifier: MIT
#include "stream/filter.hpp"

#include <fnmatch.h>

#include <algorithm>

namespace rtev {
namespace {

struct KindWord {
  std::string_view word;
  std::vector<EventKind> kinds;
};

const std::vector<KindWord>& kind_words() {
  using enum EventKind;
  static const std::vector<KindWord> words{
      {"phase", {begin, end}},
      {"counter", {counter}},
      {"alloc", {alloc}},
      {"lifecycle", {lifecycle}},
      {"user", {user_unit, user_int, user_begin, user_end, user_custom}},
      {"process", {process}},
      {"switch", {sched_switch}},
      {"wakeup", {wakeup}},
  };
  return words;
}

/// Programs choose the names: beyond this number, which no ordinary program reaches, the cache of verdicts is cleared.
constexpr std::size_t max_verdicts = 1 << 16;

}  // namespace

Result<EventFilter> EventFilter::parse(std::string_view list) {
  EventFilter filter;
  filter.kinds_[static_cast<std::size_t>(EventKind::lost)] = true;
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view word = list.substr(0, comma);
    const auto kind = std::ranges::find(kind_words(), word, &KindWord::word);
    if (kind != kind_words().end()) {
      for (const EventKind one : kind->kinds) filter.kinds_[static_cast<std::size_t>(one)] = true;
    } else if (!word.empty()) {
      filter.patterns_.emplace_back(word);
    } else {
      return std::unexpected(Error{
          .what = "an empty word in a list of events",
          .hint = "kinds are phase, counter, alloc, lifecycle, user, process, switch, wakeup; other words are names "
                  "and may have wildcards, e.g. --events 'user,minor*'"});
    }
    if (comma == std::string_view::npos) return filter;
    list.remove_prefix(comma + 1);
  }
}

bool EventFilter::accepts(const Event& event, const Registry& registry) {
  if (kinds_[static_cast<std::size_t>(event.kind)]) return true;
  if (patterns_.empty() || event.kind >= EventKind::lost) return false;
  return accepts_name(known_name_of(event, registry));
}

bool EventFilter::accepts_name(std::string_view name) {
  if (const auto known = verdicts_.find(name); known != verdicts_.end()) return known->second;
  if (verdicts_.size() >= max_verdicts) verdicts_.clear();
  const std::string text(name);
  const bool verdict = std::ranges::any_of(patterns_, [&](const std::string& pattern) {
    return text == pattern || ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
  });
  return verdicts_.emplace(text, verdict).first->second;
}

void FilterSink::consume(const Batch& batch, const Registry& registry) {
  accepted_.clear();
  for (const Event& event : batch.events()) {
    if (filter_.accepts(event, registry)) accepted_.push_back(event);
  }
  counts_.add(accepted_);
  if (!accepted_.empty()) sink_.consume(Batch(accepted_, batch.payloads()), registry);
}

void FilterSink::summary(const RunSummary& summary, const Registry& registry) {
  sink_.summary(counts_.of(summary), registry);
}

}  // namespace rtev
