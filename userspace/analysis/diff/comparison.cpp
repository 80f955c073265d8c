// SPDX-License-Identifier: MIT
#include "analysis/diff/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/diff/significance.hpp"

namespace rtev {
namespace {

/// Of the reported changes at most so many are expected to be false.
constexpr double max_false = 0.01;

struct SliceValues {
  double figure = 0;  ///< of all slices
  double of = 0;      ///< sum
  std::vector<double> values{};
};

SliceValues quotients(const CommonSlices& side, const Quotient& quotient) {
  const auto usable = [&](const SlicedSums::Row& row) {
    return !quotient.needs_scheduler || row[static_cast<std::size_t>(SliceSum::sched_lossy)] == 0;
  };
  double per = 0;
  for (const std::size_t i : side.usable())
    if (usable(side.rows()[i])) per += side.rows()[i][quotient.per];
  // The quotient of a slice with little in it is anything.
  const double least = per / static_cast<double>(std::max<std::size_t>(side.usable().size(), 1)) / 20;
  SliceValues found;
  for (const std::size_t i : side.usable()) {
    const SlicedSums::Row& row = side.rows()[i];
    if (!usable(row)) continue;
    found.of += row[quotient.of];
    if (row[quotient.per] > least) found.values.push_back(row[quotient.of] / row[quotient.per] * quotient.scale);
  }
  // Differences of counters may be below 0 by what comes a little later.
  found.figure = per > 0 ? std::max(found.of / per * quotient.scale, 0.0) : 0;
  return found;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

void Comparison::add(const FigureKind& kind, double a, double b, std::span<const double> slices_a,
                     std::span<const double> slices_b, bool is_enough) {
  if (a == 0 && b == 0) return;
  Pending pending{.kind = kind};
  if (is_enough && slices_a.size() >= least_slices && slices_b.size() >= least_slices) {
    const RankTest test = rank_test(slices_a, slices_b);
    pending = {.kind = kind, .p = test.p, .tested = true, .b_is_greater = test.b_is_greater};
  }
  figures_.push_back({.id = kind.id, .name = kind.name, .role = kind.role, .unit = kind.unit, .a = a, .b = b});
  pending_.push_back(std::move(pending));
}

void Comparison::add(const FigureKind& kind, const Quotient& quotient) {
  constexpr double least_events = 10;
  const SliceValues a = quotients(a_, quotient), b = quotients(b_, quotient);
  add(kind, a.figure, b.figure, a.values, b.values, !quotient.is_count || a.of + b.of >= least_events);
}

void Comparison::add_percentile(const FigureKind& kind, const SlicedDistribution& a, const SlicedDistribution& b,
                                double percentile) {
  if (a.all().count() == 0 || b.all().count() == 0) return;
  // So many lie beyond the percentile.
  constexpr double least_beyond = 3, least_values = 20;
  const auto is_enough = [&](const SlicedDistribution& side) {
    const auto count = static_cast<double>(side.all().count());
    return count >= least_values && count * std::min(percentile, 100 - percentile) / 100 >= least_beyond;
  };
  const std::vector<SliceCounts> slices_a = a_.counts(a), slices_b = b_.counts(b);
  const auto value_a = static_cast<double>(a.all().percentile(percentile));
  const auto value_b = static_cast<double>(b.all().percentile(percentile));
  Pending pending{.kind = kind, .b_is_greater = value_b > value_a};
  if (is_enough(a) && is_enough(b) && slices_a.size() >= least_slices && slices_b.size() >= least_slices) {
    constexpr double bucket_error = 0.01;  // of values that all lie in one bucket
    pending.tested = true;
    pending.p = difference_test(
        std::log(std::max(value_a, 1.0)), std::hypot(log_percentile_error(slices_a, percentile), bucket_error),
        std::log(std::max(value_b, 1.0)), std::hypot(log_percentile_error(slices_b, percentile), bucket_error));
  }
  figures_.push_back(
      {.id = kind.id, .name = kind.name, .role = kind.role, .unit = kind.unit, .a = value_a, .b = value_b});
  pending_.push_back(std::move(pending));
}

void Comparison::add_longest(const FigureKind& kind, const SlicedDistribution& a, const SlicedDistribution& b) {
  const auto longest = [](const std::vector<SliceCounts>& slices) {
    std::vector<double> values;
    values.reserve(slices.size());
    for (const SliceCounts& counts : slices)
      values.push_back(counts.empty() ? 0 : begin_of_bucket(counts.back().bucket));
    return values;
  };
  const std::vector<double> in_a = longest(a_.counts(a)), in_b = longest(b_.counts(b));
  add(kind, median_of(in_a), median_of(in_b), in_a, in_b, true);
}

void Comparison::add_rate(const FigureKind& kind, const SlicedDistribution& a, const SlicedDistribution& b) {
  constexpr double least_events = 10, ns_in_second = 1e9;
  const auto rates = [](const CommonSlices& side, const SlicedDistribution& distribution) {
    SliceValues found;
    double ns = 0;
    const std::vector<SliceCounts> counts = side.counts(distribution);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      double count = 0;
      for (const BucketCount& bucket : counts[i]) count += bucket.count;
      const double running_ns = side.rows()[side.usable()[i]][static_cast<std::size_t>(SliceSum::running_ns)];
      found.of += count;
      ns += running_ns;
      found.values.push_back(count / running_ns * ns_in_second);
    }
    found.figure = ns > 0 ? found.of / ns * ns_in_second : 0;
    return found;
  };
  const SliceValues in_a = rates(a_, a), in_b = rates(b_, b);
  add(kind, in_a.figure, in_b.figure, in_a.values, in_b.values, in_a.of + in_b.of >= least_events);
}

void Comparison::add_share(const FigureKind& kind, const SlicedSamples& a, const SlicedSamples& b, SliceSum all) {
  constexpr double least_samples = 100;
  const auto shares = [all](const CommonSlices& side, const SlicedSamples& samples) {
    const std::vector<double> counts = side.counts(samples);
    SliceValues found;
    double sum = 0;
    for (const std::size_t i : side.usable()) {
      const double of = side.rows()[i][static_cast<std::size_t>(all)];
      if (of <= 0) continue;
      found.of += of;
      sum += counts[i];
      found.values.push_back(counts[i] / of);
    }
    found.figure = found.of > 0 ? sum / found.of : 0;
    return found;
  };
  const SliceValues in_a = shares(a_, a), in_b = shares(b_, b);
  add(kind, in_a.figure, in_b.figure, in_a.values, in_b.values, std::min(in_a.of, in_b.of) >= least_samples);
}

DiffVerdict Comparison::verdict_of(const DiffFigure& figure, const Pending& pending) const {
  const FigureKind& kind = pending.kind;
  const bool rises = figure.b > figure.a;
  if (pending.p > max_false || pending.b_is_greater != rises) return DiffVerdict::same;
  if (std::abs(figure.b - figure.a) < kind.least) return DiffVerdict::small;
  if (figure.size() < std::log1p(min_change_ * kind.change_factor)) return DiffVerdict::small;
  if (kind.rising == Rising::bad) return rises ? DiffVerdict::worse : DiffVerdict::better;
  if (kind.rising == Rising::costs && rises) return DiffVerdict::worse;
  return rises ? DiffVerdict::more : DiffVerdict::less;
}

void Comparison::judge() {
  std::vector<double> probabilities;
  for (const Pending& pending : pending_)
    if (pending.tested) probabilities.push_back(pending.p);
  const std::vector<double> after = adjusted(probabilities);
  const std::size_t first = figures_.size() - pending_.size();
  std::size_t tested = 0;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    DiffFigure& figure = figures_[first + i];
    if (!pending_[i].tested) {
      figure.verdict = DiffVerdict::too_few;
      continue;
    }
    pending_[i].p = after[tested++];
    figure.p = pending_[i].p;
    figure.verdict = verdict_of(figure, pending_[i]);
  }
  pending_.clear();
}

}  // namespace rtev
