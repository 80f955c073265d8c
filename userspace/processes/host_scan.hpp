// SPDX-License-Identifier: MIT
// The scan: asks about all processes of the host, a few at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "helper/process_queries.hpp"
#include "processes/discovery_context.hpp"

namespace rtev {

/// Which processes a scan asks.
enum class ScanScope : std::uint8_t {
  all,
  /// Those that did not answer an earlier scan, and those that began or ended an image since: there is a record of
  /// whatever else happens to a process.
  unknown,
};

/// Answers are kept, up to a bound, until they are taken. One thread; times are ns of CLOCK_MONOTONIC.
class HostScan {
 public:
  /// What the scan saw of a process, between two times.
  struct Found {
    std::int32_t pid;
    std::uint64_t asked_ns, answered_ns;
    Image image;
    std::vector<OpenedRing> rings;
    unsigned tries = 0;  ///< to open the rings, so far
  };
  struct Listener {
    /// Which processes there are, some time after `asked_ns`.
    std::function<void(const std::unordered_set<std::int32_t>& alive, std::uint64_t asked_ns)> on_listed;
    /// A process does not answer: its memory or file systems hang. It is not asked again.
    std::function<void(std::int32_t pid, std::uint32_t user, const ProcessStat& stat)> on_silent;
  };

  /// The context and the options must outlive it.
  HostScan(const DiscoveryContext& context, const DiscoveryOptions& options, Listener listener)
      : context_(context), options_(options), listener_(std::move(listener)) {}

  /// Begins again, with all processes or those that are not known.
  void begin(ScanScope scope);
  /// Asks about some of the processes that are left.
  void ask_some(std::size_t max_processes);
  /// True until all processes have answered, but for those of users with more than may be asked at once, and all
  /// answers are taken.
  bool is_active() const;

  bool has_found() const { return !found_.empty(); }
  /// The first answer, if it came before that time.
  std::optional<Found> take_found(std::uint64_t before_ns);
  /// Has an answer taken again in some milliseconds, since no ring of it is ready. False if that was done often enough.
  bool take_again(Found& found);
  /// A process began or ended an image at that time: what was asked before is not of interest.
  void forget_found(std::int32_t pid, std::uint64_t until_ns);
  /// A process runs another program: it may answer now.
  void forget_silent(std::int32_t pid);
  /// What was found of a process could not be used: it is asked again by the next scan.
  void forget_known(std::int32_t pid) { known_.erase(pid); }
  /// Silent processes beyond those that are remembered.
  std::uint64_t unreported() const { return unreported_; }

 private:
  void list(ScanScope scope);
  void ask_again();
  void add_listed(std::vector<std::int32_t> pids, std::uint64_t asked_ns, ScanScope scope);
  std::size_t max_asked() const;
  std::size_t max_asked_of_user() const;
  void ask_waiting(std::size_t max_processes);
  void look_at(std::int32_t pid, const ProcessView& view);
  void ask_about(std::int32_t pid, std::uint32_t user, const ProcessStat& known);
  void add_answer(std::int32_t pid, std::uint64_t asked_ns, ProcessView view);
  void add_silent(std::int32_t pid, std::uint32_t user, const ProcessStat& stat);

  const DiscoveryContext& context_;
  const DiscoveryOptions& options_;
  Listener listener_;
  bool is_listing_ = false;  ///< asks which processes there are
  std::optional<ScanScope> list_again_;
  std::vector<std::int32_t> left_;
  std::vector<std::int32_t> unanswered_;  ///< to be asked again
  std::uint64_t ask_again_ns_ = 0;
  unsigned rounds_ = 0;    ///< of asking again, in this scan
  std::size_t asked_ = 0;  ///< processes that have not answered yet
  struct User {
    std::size_t asked = 0;
    std::vector<std::pair<std::int32_t, ProcessStat>> waiting{};  ///< processes to be asked, by pid
  };
  std::map<std::uint32_t, User> users_;
  std::deque<Found> found_;                                  ///< in order of answers
  std::set<std::pair<std::int32_t, std::uint64_t>> silent_;  ///< pid and start time
  std::unordered_set<std::int32_t> known_;                   ///< processes that answered
  std::uint64_t unreported_ = 0;
};

}  // namespace rtev
