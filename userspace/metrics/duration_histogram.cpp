// SPDX-License-Identifier: MIT
#include "metrics/duration_histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "base/parse.hpp"
#include "base/saturating_sum.hpp"

namespace rtev {
namespace {

std::size_t exponential_bucket(std::uint64_t ns) {
  if (ns == 0) return 0;
  const double index = std::ceil(std::log2(static_cast<double>(ns) / 1e9) * (1 << DurationHistogram::scale)) - 1;
  const double last = DurationHistogram::bucket_count - 1;
  return static_cast<std::size_t>(std::clamp(index - DurationHistogram::first_index, 0.0, last));
}

/// Which buckets a text has.
std::string layout() {
  return fmt::format("{}/{}/{}/{}", DurationHistogram::bounds_ns.size(), DurationHistogram::scale,
                     DurationHistogram::first_index, DurationHistogram::bucket_count);
}

/// " INDEX:COUNT" of buckets that are not empty.
void put_buckets(std::string& text, std::span<const std::uint64_t> buckets) {
  for (std::size_t i = 0; i < buckets.size(); ++i)
    if (buckets[i] != 0) text += fmt::format(" {}:{}", i, buckets[i]);
}

/// False for text that is not so.
bool take_buckets(std::string_view text, std::span<std::uint64_t> buckets) {
  while (!text.empty()) {
    std::string_view word = take_word(text);
    if (word.empty()) break;
    const auto index = parse_number<std::size_t>(take_until(word, ':'));
    const auto count = parse_number<std::uint64_t>(word);
    if (!index || *index >= buckets.size() || !count) return false;
    buckets[*index] = *count;
  }
  return true;
}

}  // namespace

void DurationHistogram::record(std::uint64_t ns) {
  ++count_;
  sum_ns_ = saturating_sum(sum_ns_, ns);
  ++classic_[static_cast<std::size_t>(std::ranges::lower_bound(bounds_ns, ns) - bounds_ns.begin())];
  ++exponential_[exponential_bucket(ns)];
}

void DurationHistogram::add(const DurationHistogram& other) {
  count_ += other.count_;
  sum_ns_ = saturating_sum(sum_ns_, other.sum_ns_);
  for (std::size_t i = 0; i < classic_.size(); ++i) classic_[i] += other.classic_[i];
  for (std::size_t i = 0; i < exponential_.size(); ++i) exponential_[i] += other.exponential_[i];
}

void DurationHistogram::subtract(const DurationHistogram& other) {
  count_ -= other.count_;
  sum_ns_ -= std::min(sum_ns_, other.sum_ns_);
  for (std::size_t i = 0; i < classic_.size(); ++i) classic_[i] -= other.classic_[i];
  for (std::size_t i = 0; i < exponential_.size(); ++i) exponential_[i] -= other.exponential_[i];
}

std::string DurationHistogram::text() const {
  std::string text = fmt::format("{} {} {}", layout(), count_, sum_ns_);
  put_buckets(text, classic_);
  text += ';';
  put_buckets(text, exponential_);
  return text;
}

std::optional<DurationHistogram> DurationHistogram::parse(std::string_view text) {
  if (take_word(text) != layout()) return std::nullopt;
  DurationHistogram histogram;
  const auto count = parse_number<std::uint64_t>(take_word(text));
  std::string_view classic = take_until(text, ';');
  const auto sum_ns = parse_number<std::uint64_t>(take_word(classic));
  if (!count || !sum_ns || !take_buckets(classic, histogram.classic_) || !take_buckets(text, histogram.exponential_))
    return std::nullopt;
  histogram.count_ = *count;
  histogram.sum_ns_ = *sum_ns;
  return histogram;
}

}  // namespace rtev
