// SPDX-License-Identifier: MIT
// What the HTML report draws over time: pauses by length, stop-the-world sections, rates and losses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/html_report/time_columns.hpp"
#include "analysis/latency/histogram.hpp"
#include "analysis/pauses/pause_details.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// Sums over a column of time.
struct ReportColumn {
  /// Pauses by length: shorter than 1 µs, than 2 µs, than 4 µs, ...; all others are in the last one.
  static constexpr std::size_t length_count = 25;

  std::array<std::uint32_t, length_count> pauses{};  ///< by when they began
  std::uint64_t longest_ns = 0;                      ///< pause
  std::uint64_t paused_ns = 0;                       ///< of all domains, in this column
  std::uint64_t sections = 0;                        ///< stop-the-world sections that were led
  std::uint64_t longest_arrival_ns = 0;
  std::uint64_t minor_bytes = 0, promoted_bytes = 0, explicit_calls = 0, events = 0, lost_words = 0;
  std::uint64_t gaps = 0;  ///< while probes were off: how many words were lost in them is unknown

  ReportColumn& operator+=(const ReportColumn& other);
  static std::size_t length_index(std::uint64_t ns);
};

/// A domain that arrived at stop-the-world sections as the last one.
struct LastArrival {
  std::int32_t pid = 0;
  std::string comm{};  ///< as the process made it
  std::uint16_t domain = 0;
  std::uint64_t sections = 0, total_ns = 0, longest_ns = 0;
};

/// A fold over the stream and its pauses. Memory is bounded. One thread.
class ReportSeries {
 public:
  void begin(std::uint64_t start_ns) { columns_.begin(start_ns); }
  void add(const Event& event, const Batch& batch, const Registry& registry);
  /// A pause at its end. Its sections count if its domain led them.
  void add(const PauseDetails& pause);

  const TimeColumns<ReportColumn>& columns() const { return columns_; }
  /// How long the domains of a section took to arrive, from the request of the leader to the last one. Of a pause with
  /// many sections only those count in which it spent the most time.
  const Histogram& arrivals() const { return arrivals_; }
  /// The one with most time first.
  std::vector<LastArrival> last_arrivals() const;

 private:
  using DomainKey = std::pair<ProcessIndex, std::uint16_t>;
  static constexpr std::size_t max_domains = 1024;

  void add_time(std::uint64_t begin_ns, std::uint64_t end_ns);
  void add_section(const PauseDetails& pause, const PauseSection& part);

  TimeColumns<ReportColumn> columns_;
  Histogram arrivals_;
  std::map<DomainKey, LastArrival> last_arrivals_;
};

}  // namespace rtev
