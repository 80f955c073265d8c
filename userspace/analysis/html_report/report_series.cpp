// SPDX-License-Identifier: MIT
#include "analysis/html_report/report_series.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <string_view>

#include "base/saturating_sum.hpp"
#include "rtev/names.hpp"

namespace rtev {
namespace {

/// The ids that count, of a family.
struct SeriesIds {
  std::optional<Counter> minor{}, promoted{};
  std::array<bool, 256> explicits{};

  static const SeriesIds& of(Family family) {
    static const SeriesIds before = find(Family::before_5_3), since = find(Family::since_5_3);
    return family == Family::before_5_3 ? before : since;
  }

 private:
  static SeriesIds find(Family family) {
    SeriesIds ids{.minor = find_counter(family, "minor_allocated"), .promoted = find_counter(family, "minor_promoted")};
    for (std::size_t id = 0; id < ids.explicits.size(); ++id)
      ids.explicits[id] = phase_name(family, static_cast<std::uint16_t>(id)).starts_with("explicit_gc_");
    return ids;
  }
};

void increase(std::uint64_t& sum, std::uint64_t by) {
  sum = saturating_sum(sum, by);
}

}  // namespace

ReportColumn& ReportColumn::operator+=(const ReportColumn& other) {
  for (std::size_t i = 0; i < pauses.size(); ++i) pauses[i] += other.pauses[i];
  longest_ns = std::max(longest_ns, other.longest_ns);
  longest_arrival_ns = std::max(longest_arrival_ns, other.longest_arrival_ns);
  for (std::uint64_t ReportColumn::* const sum :
       {&ReportColumn::paused_ns, &ReportColumn::sections, &ReportColumn::minor_bytes, &ReportColumn::promoted_bytes,
        &ReportColumn::explicit_calls, &ReportColumn::events, &ReportColumn::lost_words, &ReportColumn::gaps})
    increase(this->*sum, other.*sum);
  return *this;
}

std::size_t ReportColumn::length_index(std::uint64_t ns) {
  return std::min(static_cast<std::size_t>(std::bit_width(ns / 1000)), length_count - 1);
}

void ReportSeries::add(const Event& event, const Batch& batch, const Registry& registry) {
  const auto family = registry.family_of(event);
  if (!family) return;
  ReportColumn& column = columns_.at(event.time);
  const SeriesIds& ids = SeriesIds::of(*family);
  switch (event.kind) {
    case EventKind::counter:
      if (ids.minor && event.id == static_cast<std::uint16_t>(*ids.minor)) increase(column.minor_bytes, event.value);
      if (ids.promoted && event.id == static_cast<std::uint16_t>(*ids.promoted))
        increase(column.promoted_bytes, event.value);
      break;
    case EventKind::begin:
      column.explicit_calls += event.id < ids.explicits.size() && ids.explicits[event.id];
      break;
    case EventKind::lost:
      if (const auto loss = batch.payload_as<Loss>(event)) {
        increase(column.lost_words, loss->words);
        column.gaps += loss->words == 0 ? 1 : 0;
      }
      return;
    default:
      break;
  }
  ++column.events;
}

void ReportSeries::add(const PauseDetails& pause) {
  add_time(pause.begin_ns, pause.end_ns);
  ReportColumn& column = columns_.at(pause.begin_ns);
  const std::uint64_t ns = pause.duration_ns();
  ++column.pauses[ReportColumn::length_index(ns)];
  column.longest_ns = std::max(column.longest_ns, ns);
  for (const PauseSection& part : pause.sections)
    if (part.own().leads) add_section(pause, part);
}

void ReportSeries::add_time(std::uint64_t begin_ns, std::uint64_t end_ns) {
  columns_.at(end_ns);  // the width of columns does not change below
  while (begin_ns < end_ns) {
    const std::uint64_t part_ns = std::min(end_ns, columns_.end_of(begin_ns)) - begin_ns;
    increase(columns_.at(begin_ns).paused_ns, part_ns);
    begin_ns += part_ns;
  }
}

void ReportSeries::add_section(const PauseDetails& pause, const PauseSection& part) {
  const StwSection& section = *part.section;
  ReportColumn& column = columns_.at(section.begin_ns);
  ++column.sections;
  const StwDomain* const last = section.last_to_arrive();
  if (last == nullptr) return;
  const std::uint64_t ns = last->arrived_ns - std::min(last->arrived_ns, section.begin_ns);
  column.longest_arrival_ns = std::max(column.longest_arrival_ns, ns);
  arrivals_.record(ns);
  const DomainKey key{pause.domain.process, last->domain};
  if (last_arrivals_.size() >= max_domains && !last_arrivals_.contains(key)) return;
  LastArrival& domain = last_arrivals_[key];
  domain.pid = pause.domain.pid;
  domain.comm = pause.comm;
  domain.domain = last->domain;
  ++domain.sections;
  increase(domain.total_ns, ns);
  domain.longest_ns = std::max(domain.longest_ns, ns);
}

std::vector<LastArrival> ReportSeries::last_arrivals() const {
  std::vector<LastArrival> all;
  all.reserve(last_arrivals_.size());
  for (const auto& [key, domain] : last_arrivals_) all.push_back(domain);
  std::ranges::sort(all, std::greater<>(), &LastArrival::total_ns);
  return all;
}

}  // namespace rtev
