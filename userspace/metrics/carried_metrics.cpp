// SPDX-License-Identifier: MIT
#include "metrics/carried_metrics.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/parse.hpp"

namespace rtev {
namespace {

using Labels = MetricSnapshot::Labels;
using Series = MetricSnapshot::Series;

constexpr std::string_view first_line = "rtev-bpf-metrics";

Labels owned(MetricLabels labels) {
  Labels all;
  for (const auto& [key, value] : labels) all.emplace_back(key, value);
  return all;
}

template <typename Amount>
const Amount* amount_of(const Series* series, const Labels& labels) {
  if (series == nullptr) return nullptr;
  const auto found = series->find(labels);
  return found != series->end() ? std::get_if<Amount>(&found->second) : nullptr;
}

std::int64_t sum(std::int64_t one, std::int64_t other) {
  std::int64_t both = 0;
  return __builtin_add_overflow(one, other, &both) ? std::numeric_limits<std::int64_t>::max() : both;
}

/// Nothing for other text.
std::optional<Labels> parse_labels(std::string_view text) {
  Labels labels;
  while (!text.empty()) {
    const std::string_view key = take_until(text, '\t');
    if (key.empty()) return std::nullopt;
    labels.emplace_back(key, take_until(text, '\t'));
  }
  return labels;
}

bool is_control(char byte) {
  return static_cast<unsigned char>(byte) < ' ' && byte != '\t' && byte != '\n';
}

std::unexpected<Error> refuse(std::string why) {
  return std::unexpected(Error{.what = "cannot read the metrics of the last agent", .why = std::move(why)});
}

}  // namespace

void MetricSnapshot::family(const MetricFamily& family) {
  series_ = family.type == MetricType::gauge ? nullptr : &families_[std::string(family.name)];
}

void MetricSnapshot::value(MetricLabels labels, std::int64_t amount) {
  if (series_ != nullptr) series_->insert_or_assign(owned(labels), amount);
}

void MetricSnapshot::histogram(MetricLabels labels, const DurationHistogram& histogram) {
  if (series_ != nullptr) series_->insert_or_assign(owned(labels), histogram);
}

const Series* MetricSnapshot::series(std::string_view family) const {
  const auto found = families_.find(family);
  return found != families_.end() ? &found->second : nullptr;
}

std::set<std::string> MetricSnapshot::groups() const {
  std::set<std::string> all;
  for (const auto& [family, series] : families_)
    for (const auto& [labels, amount] : series)
      for (const auto& [key, value] : labels)
        if (key == "group") all.insert(value);
  return all;
}

std::string MetricSnapshot::text() const {
  std::string text(first_line);
  text += '\n';
  for (const auto& [family, series] : families_) {
    text.append("family\t").append(family).append("\n");
    for (const auto& [labels, amount] : series) {
      if (const auto* const count = std::get_if<std::int64_t>(&amount)) {
        text.append("count\t").append(std::to_string(*count));
      } else {
        text.append("times\t").append(std::get<DurationHistogram>(amount).text());
      }
      for (const auto& [key, value] : labels) text.append("\t").append(key).append("\t").append(value);
      text += '\n';
    }
  }
  return text;
}

Result<MetricSnapshot> MetricSnapshot::parse(std::string_view text) {
  if (text.size() > max_bytes) return refuse("they are too long");
  if (take_until(text, '\n') != first_line) return refuse("they are of an unknown kind");
  if (std::ranges::any_of(text, is_control)) return refuse("they are not text");
  MetricSnapshot snapshot;
  Series* series = nullptr;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view kind = take_until(line, '\t'), first = take_until(line, '\t');
    if (kind == "family") {
      series = &snapshot.families_[std::string(first)];
      continue;
    }
    auto labels = parse_labels(line);
    if (series == nullptr || !labels) continue;
    if (kind == "count") {
      const auto count = parse_number<std::int64_t>(first);
      if (count && *count >= 0) series->insert_or_assign(std::move(*labels), *count);
    } else if (kind == "times") {
      if (const auto times = DurationHistogram::parse(first)) series->insert_or_assign(std::move(*labels), *times);
    }
  }
  return snapshot;
}

void CarriedMetrics::limit_groups(std::size_t max_groups) {
  std::set<std::string> kept = own.groups();
  for (const std::string& group : before.groups()) {
    if (kept.size() >= max_groups) break;
    kept.insert(group);
  }
  before.keep_groups([&](const std::string& group) { return kept.contains(group); });
}

void CarryingVisitor::family(const MetricFamily& family) {
  end_family();
  const bool is_carried = family.type != MetricType::gauge;
  before_ = is_carried ? carried_.before.series(family.name) : nullptr;
  own_ = is_carried ? carried_.own.series(family.name) : nullptr;
  to_.family(family);
}

void CarryingVisitor::value(MetricLabels labels, std::int64_t amount) {
  if (before_ == nullptr && own_ == nullptr) return to_.value(labels, amount);
  const Labels all = owned(labels);
  if (const auto* const own = amount_of<std::int64_t>(own_, all)) {
    if (amount >= *own) {
      amount -= *own;
    } else {
      own_->erase(all);
    }
  }
  if (const auto* const before = amount_of<std::int64_t>(before_, all)) {
    amount = sum(amount, *before);
    seen_.insert(all);
  }
  to_.value(labels, amount);
}

void CarryingVisitor::histogram(MetricLabels labels, const DurationHistogram& histogram) {
  if (before_ == nullptr && own_ == nullptr) return to_.histogram(labels, histogram);
  const Labels all = owned(labels);
  DurationHistogram carried = histogram;
  if (const auto* const own = amount_of<DurationHistogram>(own_, all)) {
    if (histogram.count() >= own->count()) {
      carried.subtract(*own);
    } else {
      own_->erase(all);
    }
  }
  if (const auto* const before = amount_of<DurationHistogram>(before_, all)) {
    carried.add(*before);
    seen_.insert(all);
  }
  to_.histogram(labels, carried);
}

/// Also what only the agents before have counted: of groups without processes, and of names.
void CarryingVisitor::end_family() {
  if (before_ != nullptr) {
    for (const auto& [labels, amount] : *before_) {
      if (seen_.contains(labels)) continue;
      std::vector<MetricLabel> views;
      for (const auto& [key, value] : labels) views.push_back({key, value});
      if (const auto* const count = std::get_if<std::int64_t>(&amount)) {
        to_.value(views, *count);
      } else {
        to_.histogram(views, std::get<DurationHistogram>(amount));
      }
    }
  }
  before_ = own_ = nullptr;
  seen_.clear();
}

}  // namespace rtev
