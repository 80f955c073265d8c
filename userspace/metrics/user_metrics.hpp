// SPDX-License-Identifier: MIT
// Metrics of user events, for names that were asked for: programs choose names, and could choose any number of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/open_spans.hpp"
#include "analysis/spans/library_spans.hpp"
#include "metrics/duration_histogram.hpp"
#include "rtev/event.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// Of a group, by name. Names are printable.
struct UserFigures {
  /// Of each kind. Further ones are counted under the name "other".
  static constexpr std::size_t max_names = 32;

  std::map<std::string, std::uint64_t, std::less<>> events{};
  std::map<std::string, DurationHistogram, std::less<>> spans{};
  std::map<std::string, std::int64_t, std::less<>> values{};  ///< the last one of integer events
};

/// Globs of names; empty: none.
struct UserMetricOptions {
  std::vector<std::string> events{}, spans{}, values{};

  bool any() const { return !events.empty() || !spans.empty() || !values.empty(); }
};

/// A fold over user events. Memory is bounded. One thread.
class UserMetrics {
 public:
  explicit UserMetrics(UserMetricOptions options) : options_(std::move(options)) {}

  void add(const Event& event, const Batch& batch, const RingInfo& ring, UserFigures& figures);
  /// Words of the ring were lost, or its domain ended: what is open there never ends, as far as known.
  void forget(ProcessIndex process, std::uint16_t domain);
  void forget(ProcessIndex process);

 private:
  /// A kind of figures that a name counts for.
  struct Wanted {
    std::string name{};  ///< printable
    bool event = false, span = false, value = false;
  };
  static constexpr std::size_t max_wanted = 1 << 16, max_open = 1 << 16;

  const Wanted& wanted(ProcessIndex process, std::uint16_t id, const RingInfo& ring);
  Wanted judge(std::string_view name) const;
  void end(const std::optional<OpenSpan>& span, const Event& event, const RingInfo& ring, UserFigures& figures);

  UserMetricOptions options_;
  std::map<std::pair<ProcessIndex, std::uint16_t>, OpenSpans<64>> open_;  ///< by process and domain
  std::unordered_map<std::uint64_t, Wanted> wanted_;                      ///< by process and id
  LibrarySpans libraries_;
};

}  // namespace rtev
