// SPDX-License-Identifier: MIT
// Cumulative metrics that an agent has from those that it has replaced: counters go on where they were.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "metrics/metric_visitor.hpp"
#include "rtev/error.hpp"

namespace rtev {

/// Counters and histograms by name and labels, without gauges. Fill it as a visitor of metrics.
class MetricSnapshot final : public MetricVisitor {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  using Amount = std::variant<std::int64_t, DurationHistogram>;
  using Series = std::map<Labels, Amount>;

  /// More is refused: another process wrote it.
  static constexpr std::size_t max_bytes = std::size_t{32} << 20;

  void family(const MetricFamily& family) override;
  void value(MetricLabels labels, std::int64_t amount) override;
  void histogram(MetricLabels labels, const DurationHistogram& histogram) override;

  /// Of a family; null if it has none.
  const Series* series(std::string_view family) const;
  Series* series(std::string_view family) { return const_cast<Series*>(std::as_const(*this).series(family)); }
  /// Groups (values of the label "group") that are in it.
  std::set<std::string> groups() const;
  /// Removes the series of groups for which this is false.
  template <typename Predicate>
  void keep_groups(const Predicate& is_kept) {
    for (auto& [family, series] : families_)
      std::erase_if(series, [&](const auto& one) {
        return std::ranges::any_of(one.first,
                                   [&](const auto& label) { return label.first == "group" && !is_kept(label.second); });
      });
  }

  /// A line for each family and series, of fields with tabs between them.
  std::string text() const;
  /// Series that this version does not know how to read are left out.
  static Result<MetricSnapshot> parse(std::string_view text);

 private:
  std::map<std::string, Series, std::less<>> families_;
  Series* series_ = nullptr;  ///< of the family that is visited; null: of no interest
};

/// What the agents before had counted until a time, and what this one had by then, which is in it.
struct CarriedMetrics {
  MetricSnapshot before{}, own{};

  /// Forgets groups of `before` that `own` does not have, beyond so many in all: else each replacement could add some.
  void limit_groups(std::size_t max_groups);
};

/// Adds what is carried to the metrics that it hands on to another visitor: a series is `before` + (now - `own`). One
/// that begins anew, since its group was forgotten, counts from then on.
class CarryingVisitor final : public MetricVisitor {
 public:
  CarryingVisitor(MetricVisitor& to, CarriedMetrics& carried) : to_(to), carried_(carried) {}

  void family(const MetricFamily& family) override;
  void value(MetricLabels labels, std::int64_t amount) override;
  void histogram(MetricLabels labels, const DurationHistogram& histogram) override;
  /// To be called after the last metric.
  void end() { end_family(); }

 private:
  void end_family();

  MetricVisitor& to_;
  CarriedMetrics& carried_;
  // Of the family; null: none.
  const MetricSnapshot::Series* before_ = nullptr;
  MetricSnapshot::Series* own_ = nullptr;
  std::set<MetricSnapshot::Labels> seen_;  ///< of before_
};

}  // namespace rtev
