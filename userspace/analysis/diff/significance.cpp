// SPDX-License-Identifier: MIT
#include "analysis/diff/significance.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

namespace rtev {
namespace {

/// Of a standard normal value this far from 0 or further, in either direction.
double two_sided(double z) {
  return std::erfc(std::abs(z) / std::numbers::sqrt2);
}

/// The indices of values, the least value first.
std::vector<std::size_t> ascending(std::span<const double> values) {
  std::vector<std::size_t> order;
  order.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  return order;
}

struct Ranks {
  std::vector<double> of{};  ///< of a's values, then of b's; equal values share their mean rank
  double ties = 0;           ///< sum of t³ - t over groups of t equal values
};

Ranks ranks_of(std::span<const double> a, std::span<const double> b) {
  std::vector<double> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  const std::vector<std::size_t> order = ascending(all);
  Ranks ranks{.of = std::vector<double>(all.size())};
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last < order.size() && all[order[last]] == all[order[first]]) ++last;
    const auto count = static_cast<double>(last - first);
    for (std::size_t i = first; i < last; ++i) ranks.of[order[i]] = static_cast<double>(first + last + 1) / 2;
    ranks.ties += count * count * count - count;
    first = last;
  }
  return ranks;
}

/// Sums of squares of a series around its mean, and of products of neighbours.
struct Autocovariance {
  double squares = 0, neighbours = 0;

  void add(std::span<const double> series) {
    const double mean = std::accumulate(series.begin(), series.end(), 0.0) / static_cast<double>(series.size());
    for (std::size_t i = 0; i < series.size(); ++i) {
      squares += (series[i] - mean) * (series[i] - mean);
      if (i > 0) neighbours += (series[i] - mean) * (series[i - 1] - mean);
    }
  }
  /// How many times as large the variance of a mean is as that of independent values.
  double inflation() const {
    constexpr double max_correlation = 0.9;
    const double correlation = squares > 0 ? std::clamp(neighbours / squares, 0.0, max_correlation) : 0;
    return (1 + correlation) / (1 - correlation);
  }
};

}  // namespace

RankTest rank_test(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty()) return {};
  const Ranks ranks = ranks_of(a, b);
  const std::span<const double> of_a(ranks.of.data(), a.size()), of_b(ranks.of.data() + a.size(), b.size());
  Autocovariance likeness;
  likeness.add(of_a);
  likeness.add(of_b);
  const auto count_a = static_cast<double>(a.size()), count_b = static_cast<double>(b.size());
  const double count = count_a + count_b;
  const double u = std::accumulate(of_a.begin(), of_a.end(), 0.0) - count_a * (count_a + 1) / 2;
  const double variance =
      count_a * count_b / 12 * (count + 1 - ranks.ties / (count * (count - 1))) * likeness.inflation();
  if (variance <= 0) return {};  // all values are equal
  const double distance = u - count_a * count_b / 2;
  return {.p = two_sided(std::max(std::abs(distance) - 0.5, 0.0) / std::sqrt(variance)), .b_is_greater = distance < 0};
}

double difference_test(double a, double error_a, double b, double error_b) {
  const double error = std::hypot(error_a, error_b);
  if (error <= 0) return a == b ? 1 : 0;
  return two_sided((b - a) / error);
}

double log_percentile_error(std::span<const SliceCounts> slices, double percentile) {
  constexpr std::size_t resamples = 200;
  if (slices.size() < 2) return 0;
  const auto run = static_cast<std::size_t>(std::ceil(std::cbrt(static_cast<double>(slices.size()))));
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> counts(bucket_count);
  std::vector<double> logs;
  logs.reserve(resamples);
  for (std::size_t resample = 0; resample < resamples; ++resample) {
    std::ranges::fill(counts, 0);
    std::size_t drawn = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      // Not std::uniform_int_distribution, whose values depend on the library.
      drawn = i % run == 0 ? static_cast<std::size_t>(static_cast<unsigned __int128>(random()) * slices.size() >> 64)
                           : (drawn + 1) % slices.size();
      for (const BucketCount& bucket : slices[drawn]) counts[bucket.bucket] += bucket.count;
    }
    if (const auto value = percentile_of(counts, percentile)) logs.push_back(std::log(std::max(*value, 1.0)));
  }
  if (logs.size() < 2) return 0;
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size());
  double squares = 0;
  for (const double log : logs) squares += (log - mean) * (log - mean);
  // Few slices differ less from each other than many would.
  const double small = static_cast<double>(slices.size()) / static_cast<double>(slices.size() - 1);
  return std::sqrt(squares / static_cast<double>(logs.size() - 1) * small);
}

std::vector<double> adjusted(std::span<const double> probabilities) {
  const std::vector<std::size_t> order = ascending(probabilities);
  std::vector<double> result(probabilities.size());
  double least = 1;
  for (std::size_t rank = order.size(); rank > 0; --rank) {
    const std::size_t i = order[rank - 1];
    least = std::min(least, probabilities[i] * static_cast<double>(order.size()) / static_cast<double>(rank));
    result[i] = least;
  }
  return result;
}

}  // namespace rtev
