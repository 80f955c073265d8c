// SPDX-License-Identifier: MIT
#include "analysis/latency/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

namespace rtev {
namespace {

// Below 2^11 each value has a bucket of its own; above, each power of two is divided into 2^10 buckets.
constexpr unsigned exact_bits = 11;
constexpr unsigned divided_bits = exact_bits - 1;

constexpr std::uint32_t bucket_index(std::uint64_t value) {
  const auto bits = static_cast<unsigned>(std::bit_width(value));
  if (bits <= exact_bits) return static_cast<std::uint32_t>(value);
  const unsigned shift = bits - exact_bits;
  return (shift << divided_bits) + static_cast<std::uint32_t>(value >> shift);
}

/// The greatest value that lies in a bucket.
constexpr std::uint64_t last_of(std::uint32_t bucket) {
  if (bucket < (1U << exact_bits)) return bucket;
  const unsigned shift = (bucket >> divided_bits) - 1;
  const std::uint64_t high = (1ULL << divided_bits) | (bucket & ((1U << divided_bits) - 1));
  return ((high + 1) << shift) - 1;
}

static_assert(bucket_index(2047) == 2047 && bucket_index(2048) == 2048 && bucket_index(2049) == 2048 &&
              last_of(2048) == 2049);
static_assert(bucket_index(4096) == bucket_index(4099) && bucket_index(4096) == bucket_index(4095) + 1);
static_assert(last_of(bucket_index(std::numeric_limits<std::uint64_t>::max())) ==
              std::numeric_limits<std::uint64_t>::max());

constexpr std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

}  // namespace

Histogram::Block& Histogram::block_at(std::uint32_t number) {
  const auto place = std::ranges::lower_bound(places_, number, {}, &Place::number);
  if (place != places_.end() && place->number == number) return blocks_[place->position];
  places_.insert(place, {.number = number, .position = static_cast<std::uint32_t>(blocks_.size())});
  return blocks_.emplace_back();
}

void Histogram::count_pending() {
  for (std::uint32_t i = 0; i < pending_count_; ++i) count(pending_[i]);
  pending_count_ = 0;
}

void Histogram::record(std::uint64_t value) {
  pending_[pending_count_++] = bucket_index(value);
  if (pending_count_ == pending_.size()) count_pending();
  ++count_;
  total_ = saturated_sum(total_, value);
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  // Welford's method: sums of squares would lose what matters where the values are large and alike.
  const double distance = static_cast<double>(value) - mean_;
  mean_ += distance / static_cast<double>(count_);
  squares_ += distance * (static_cast<double>(value) - mean_);
}

void Histogram::merge(const Histogram& other) {
  if (other.count_ == 0) return;
  const auto ours = static_cast<double>(count_), theirs = static_cast<double>(other.count_);
  const double distance = other.mean_ - mean_;
  mean_ += distance * (theirs / (ours + theirs));
  squares_ += other.squares_ + distance * distance * (ours * theirs / (ours + theirs));
  for (std::uint32_t i = 0; i < other.pending_count_; ++i) count(other.pending_[i]);
  for (const Place& place : other.places_) {
    Block& mine = block_at(place.number);
    std::ranges::transform(mine, other.blocks_[place.position], mine.begin(), std::plus{});
  }
  count_ += other.count_;
  total_ = saturated_sum(total_, other.total_);
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

double Histogram::standard_deviation() const {
  return count_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(count_));
}

std::optional<std::uint64_t> Histogram::known_percentile(double percentile) const {
  constexpr double least = 1 - 1e-6;  // 100 - 99.9 is a little less than 0.1
  const double beyond = static_cast<double>(count_) * std::min(percentile, 100 - percentile) / 100;
  const bool is_extreme = percentile <= 0 || percentile >= 100;
  if (count_ == 0 || (!is_extreme && beyond < least)) return std::nullopt;
  return this->percentile(percentile);
}

std::uint64_t Histogram::percentile(double percentile) const {
  if (count_ == 0) return 0;
  if (!(percentile > 0)) return min_;
  if (percentile >= 100) return max_;
  const auto nearest = static_cast<std::uint64_t>(std::llround(percentile / 100 * static_cast<double>(count_)));
  const std::uint64_t rank = std::max<std::uint64_t>(1, nearest);
  if (pending_count_ > 0) {
    Histogram whole = *this;
    whole.count_pending();
    return whole.percentile(percentile);
  }
  std::uint64_t seen = 0;
  for (const auto& [number, position] : places_) {
    const std::uint32_t first = number * static_cast<std::uint32_t>(block_buckets);
    for (std::uint32_t i = 0; i < block_buckets; ++i) {
      seen += blocks_[position][i];
      if (seen >= rank) return std::clamp(last_of(first + i), min_, max_);
    }
  }
  return max_;
}

}  // namespace rtev
