// SPDX-License-Identifier: MIT
// Whether two recordings differ by more than chance. Pure functions: the same input gives the same answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/diff/sliced_distribution.hpp"

namespace rtev {

struct RankTest {
  double p = 1;
  bool b_is_greater = false;  ///< values of b tend to be greater
};
/// The probability that values of one source differ as much as these, in either direction: the rank test of Mann and
/// Whitney, by the normal approximation, with corrections for ties and for continuity. Values are in order of time.
/// Neighbours that are alike (lag-1 autocorrelation of the ranks in each series) count for less than values that are
/// independent. 1 if one of them is empty.
RankTest rank_test(std::span<const double> a, std::span<const double> b);

/// Probability that two figures with these standard errors differ by as much, in either direction, if they are the
/// same.
double difference_test(double a, double error_a, double b, double error_b);

/// Standard error of the logarithm of a percentile of values in slices of time. By a circular block bootstrap: runs of
/// neighbouring slices, as long as the cube root of their number, are drawn with replacement, with a fixed seed. Slices
/// and not values, because values of one slice are alike; runs, because neighbours are.
double log_percentile_error(std::span<const SliceCounts> slices, double percentile);

/// Adjusts the probabilities of several tests (Benjamini and Hochberg): those of at most q after that have an expected
/// share of q of false ones among them.
std::vector<double> adjusted(std::span<const double> probabilities);

}  // namespace rtev
