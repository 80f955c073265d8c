// SPDX-License-Identifier: MIT
#include "formats/brief/brief_sums.hpp"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "analysis/report_text.hpp"

namespace rtev {

BriefSums::Tally& BriefSums::Tally::operator+=(const Tally& other) {
  count += other.count;
  total_ns += other.total_ns;
  longest_ns = std::max(longest_ns, other.longest_ns);
  return *this;
}

BriefSums::Tally& BriefSums::Sums::span(std::string_view name) {
  if (const auto known = spans.find(name); known != spans.end()) return known->second;
  return spans.size() < max_names ? spans[std::string(name)] : other_spans;
}

BriefSums::Sums& BriefSums::Sums::operator+=(const Sums& other) {
  pauses += other.pauses;
  stalls += other.stalls;
  for (const auto& [name, tally] : other.spans) span(name) += tally;
  other_spans += other.other_spans;
  values += other.values;
  lost.words += other.lost.words;
  lost.gaps += other.lost.gaps;
  return *this;
}

BriefSums::Sums& BriefSums::of(ProcessIndex process) {
  if (const auto known = sums_.find(process); known != sums_.end()) return known->second;
  return sums_.size() < max_programs ? sums_[process] : others_;
}

void BriefSums::add_span(ProcessIndex process, std::string_view name, std::uint64_t ns) {
  of(process).span(name).add(ns);
}

std::string BriefSums::text_of(const Sums& sums) {
  TextBuffer out;
  std::string_view separator;
  const auto begin = [&] { out.add(std::exchange(separator, "; ")); };
  if (sums.lost.words > 0) {
    begin();
    print(out, "LOST {}", Counted{sums.lost.words, "word", "words"});
  }
  if (sums.lost.gaps > 0) {
    begin();
    print(out, "LOST unknown events: probes were off {}", times(sums.lost.gaps));
  }
  if (sums.pauses.count > 0) {
    begin();
    print(out, "{}, {} in all, longest {}", Counted{sums.pauses.count, "pause", "pauses"},
          Duration{sums.pauses.total_ns}, Duration{sums.pauses.longest_ns});
  }
  if (sums.stalls.count > 0) {
    begin();
    print(out, "{}, longest {}", Counted{sums.stalls.count, "stall", "stalls"}, Duration{sums.stalls.longest_ns});
  }
  std::vector<std::pair<std::string_view, Tally>> spans(sums.spans.begin(), sums.spans.end());
  std::ranges::sort(spans, [](const auto& a, const auto& b) { return a.second.total_ns > b.second.total_ns; });
  Tally others = sums.other_spans;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const auto& [name, tally] = spans[i];
    if (i >= max_shown_names) {
      others += tally;
      continue;
    }
    begin();
    print(out, "{} × {}, longest {}", Grouped{tally.count}, Quoted{name}, Duration{tally.longest_ns});
  }
  if (others.count > 0) {
    begin();
    print(out, "{}, longest {}", Counted{others.count, "other span", "other spans"}, Duration{others.longest_ns});
  }
  if (sums.values > 0) {
    begin();
    print(out, "{}", Counted{sums.values, "other user event", "other user events"});
  }
  return std::string{out.text()};
}

std::vector<BriefSums::Line> BriefSums::take(std::size_t max_lines, const Registry& registry) {
  std::vector<std::pair<ProcessIndex, const Sums*>> order;
  order.reserve(sums_.size());
  for (const auto& [process, sums] : sums_) order.emplace_back(process, &sums);
  std::ranges::sort(order, std::ranges::greater{}, [](const auto& one) {
    return std::tuple(one.second->lost.any(), one.second->lost.words, one.second->pauses.total_ns, one.first);
  });
  const bool all_fit = order.size() <= max_lines && text_of(others_).empty();
  const std::size_t shown = all_fit ? order.size() : std::min(order.size(), max_lines - 1);
  std::vector<Line> lines;
  lines.reserve(max_lines);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& [process, sums] = order[i];
    if (i < shown) {
      const ProcessInfo& info = registry.process(process);
      lines.push_back({.program = fmt::format("{}", ProcessName{info.name, info.pid}),
                       .text = text_of(*sums),
                       .has_loss = sums->lost.any()});
    } else {
      others_ += *sums;
    }
  }
  if (!all_fit) {
    lines.push_back({.program = "other programs", .text = text_of(others_), .has_loss = others_.lost.any()});
  }
  sums_.clear();
  others_ = {};
  return lines;
}

}  // namespace rtev
