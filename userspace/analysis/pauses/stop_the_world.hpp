// SPDX-License-Identifier: MIT
// Stop-the-world sections: all domains of a process side by side.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/pauses/thread_history.hpp"
#include "rtev/names.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// One domain's part in a section. Times are CLOCK_MONOTONIC in ns; 0 if something did not happen or was not seen.
struct StwDomain {
  std::uint16_t domain = 0;
  bool leads = false;
  std::int32_t tid = 0;  ///< that took part for the domain; 0: unknown
  ThreadRole role = ThreadRole::unknown;
  std::string task{};            ///< TaskTracker::running_name() when it joined
  std::uint64_t joined_ns = 0;   ///< its stw_handler or stw_leader began
  std::uint64_t arrived_ns = 0;  ///< reached the barrier at the start; without a barrier: joined_ns
  std::uint64_t passed_ns = 0;   ///< left that barrier
  std::uint64_t minor_begin_ns = 0;
  std::uint64_t minor_end_ns = 0;
  std::uint64_t minor_passed_ns = 0;  ///< left the barrier at the end of the minor collection
  std::uint64_t left_ns = 0;
  ThreadActivity before{};  ///< from the leader's request to arrived_ns
  ThreadActivity minor{};   ///< from minor_begin_ns to minor_end_ns
  /// The pause that the domain took part in, once it is over.
  std::uint64_t pause_begin_ns = 0;
  std::uint64_t pause_ns = 0;
  TimeSplit pause_time{};
};

struct StwSection {
  /// Further domains are only counted, in `unnamed`.
  static constexpr std::size_t max_domains = 256;

  std::uint64_t id = 0;
  ProcessIndex process = 0;
  /// The leader asks the others to stop; where that was not seen, when the first one joined.
  std::uint64_t begin_ns = 0;
  bool leader_seen = false;
  bool has_barrier = false;  ///< all wait for each other at the start: else each takes part when it gets there
  std::vector<StwDomain> domains;
  std::uint64_t unnamed = 0;
  std::vector<std::uint16_t> lost_domains;  ///< in whose rings words were lost that may concern their parts

  /// The domain that reached the barrier at the start last, and the one that ended its minor collection last. Null if
  /// none did, or if only one domain took part.
  const StwDomain* last_to_arrive() const;
  const StwDomain* last_to_end_minor() const;
  std::uint64_t end_ns() const;
  /// No domain that took part is seen to be in it still.
  bool is_over() const { return std::ranges::find(domains, std::uint64_t{0}, &StwDomain::left_ns) == domains.end(); }
  /// Words of a domain's ring were lost.
  void lose(std::uint16_t domain, const Loss& loss);
};

/// Which section each process is in. A new one cannot begin before all domains have done their part in the one before,
/// so a handler belongs to the last section that began. Of each process one section is remembered. One thread.
class StopTheWorld {
 public:
  /// Of all sections that are remembered, here or by pauses, at most `max_parts` domains are named.
  explicit StopTheWorld(std::size_t max_parts) : max_parts_(max_parts) {}

  /// The part of one domain in a section.
  struct Part {
    std::shared_ptr<StwSection> section;
    std::size_t index = 0;
    /// Valid until another domain joins.
    StwDomain& domain() const { return section->domains[index]; }
  };
  /// Nothing where a section is too large to name the domain.
  std::optional<Part> lead(ProcessIndex process, std::uint16_t domain, std::uint64_t time_ns);
  std::optional<Part> join(ProcessIndex process, Family family, std::uint16_t domain, std::uint64_t time_ns);

  /// The section that began last; null if there is none.
  std::shared_ptr<StwSection> current(ProcessIndex process) const;
  void forget(ProcessIndex process) { current_.erase(process); }

 private:
  static constexpr std::size_t max_processes = 65536;

  std::shared_ptr<StwSection>& begin(ProcessIndex process, std::uint64_t time_ns);
  std::optional<Part> take_part(const std::shared_ptr<StwSection>& section, const StwDomain& domain);

  std::size_t max_parts_;
  std::shared_ptr<std::size_t> parts_ = std::make_shared<std::size_t>();  ///< sections may outlive this
  std::unordered_map<ProcessIndex, std::shared_ptr<StwSection>> current_;
  std::uint64_t last_id_ = 0;
};

}  // namespace rtev
