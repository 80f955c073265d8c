// SPDX-License-Identifier: MIT
#include "processes/host_scan.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/name_globs.hpp"

namespace rtev {
namespace {

/// Processes that were found and not taken yet: each holds descriptors, mostly two. Where there is none left an answer
/// is lost, as if the process were silent.
constexpr std::size_t max_found = 1024;

/// One user's processes take this part of the places at the most.
constexpr std::size_t users_share = 4;

/// Answers whose rings are not ready are taken again after so long, so often. Later answers wait meanwhile.
constexpr std::uint64_t retry_ns = 5'000'000;
constexpr unsigned max_tries = 20;

/// What was not answered at all is asked again after so long, so often: on an overloaded host it is the helper process
/// that does not answer in time.
constexpr std::uint64_t ask_again_after_ns = 500'000'000;
constexpr unsigned max_rounds = 8;

/// The user of queries about processes whose user is not known yet.
constexpr std::uint32_t unknown_user = UINT32_MAX;

/// Processes that are remembered because they did not answer.
constexpr std::size_t max_silent = 65536;

}  // namespace

void HostScan::begin(ScanScope scope) {
  is_listing_ = true;
  unanswered_.clear();
  rounds_ = 0;
  list(scope);
}

void HostScan::list(ScanScope scope) {
  context_.queries.ask({.all_pids = true}, unknown_user, [this, scope, asked_ns = context_.clock()](ProcessView view) {
    if (view.no_answer && rounds_ < max_rounds) {
      list_again_ = scope;
      ask_again_ns_ = context_.clock() + ask_again_after_ns;
      return;
    }
    is_listing_ = false;
    if (!view.no_answer) add_listed(std::move(view.pids), asked_ns, scope);
  });
}

void HostScan::ask_again() {
  if ((!list_again_ && unanswered_.empty()) || !left_.empty() || context_.clock() < ask_again_ns_) return;
  ++rounds_;
  left_ = std::exchange(unanswered_, {});
  if (list_again_) list(*std::exchange(list_again_, std::nullopt));
}

void HostScan::add_listed(std::vector<std::int32_t> pids, std::uint64_t asked_ns, ScanScope scope) {
  left_ = std::move(pids);
  for (auto& [id, user] : users_) user.waiting.clear();
  const std::unordered_set<std::int32_t> alive(left_.begin(), left_.end());
  listener_.on_listed(alive, asked_ns);
  std::erase_if(silent_, [&](const auto& process) { return !alive.contains(process.first); });
  if (scope == ScanScope::all) known_.clear();
  std::erase_if(known_, [&](std::int32_t pid) { return !alive.contains(pid); });
  std::erase_if(left_, [this](std::int32_t pid) { return known_.contains(pid); });
  if (options_.filter.only_followed) left_.clear();
}

bool HostScan::is_active() const {
  std::size_t of_busy_users = 0;
  for (const auto& [id, user] : users_) of_busy_users += user.waiting.empty() ? 0 : user.asked;
  return is_listing_ || !left_.empty() || !unanswered_.empty() || asked_ > of_busy_users || has_found();
}

/// Processes that may be asked, or found and not taken, at a time.
std::size_t HostScan::max_asked() const {
  return std::clamp<std::size_t>(options_.ring_descriptors / 8, 1, max_found);
}

std::size_t HostScan::max_asked_of_user() const {
  return std::max<std::size_t>(max_asked() / users_share, 1);
}

void HostScan::ask_some(std::size_t max_processes) {
  ask_again();
  for (; max_processes > 0 && !left_.empty() && found_.size() + asked_ < max_asked(); --max_processes) {
    const std::int32_t pid = left_.back();
    left_.pop_back();
    if (!options_.filter.wants_pid(pid)) continue;
    ++asked_;
    // First only what every process answers, to know whose it is and whether it is wanted.
    context_.queries.ask({.pid = pid, .user = true}, unknown_user,
                         [this, pid](const ProcessView& view) { look_at(pid, view); });
  }
  ask_waiting(max_processes);
}

/// Asks about processes that had to wait for others of their user: else the many processes of one user, which may
/// answer slowly, would keep the scan from those of others.
void HostScan::ask_waiting(std::size_t max_processes) {
  for (auto entry = users_.begin(); entry != users_.end();) {
    auto& [id, user] = *entry;
    for (; max_processes > 0 && !user.waiting.empty() && user.asked < max_asked_of_user() &&
           found_.size() + asked_ < max_asked();
         --max_processes) {
      const auto [pid, known] = std::move(user.waiting.back());
      user.waiting.pop_back();
      ++asked_;
      ask_about(pid, id, known);
    }
    entry = user.asked == 0 && user.waiting.empty() ? users_.erase(entry) : std::next(entry);
  }
}

void HostScan::look_at(std::int32_t pid, const ProcessView& view) {
  const auto& stat = view.stat;
  if (view.no_answer && rounds_ < max_rounds) {
    --asked_;
    if (unanswered_.empty()) ask_again_ns_ = context_.clock() + ask_again_after_ns;
    unanswered_.push_back(pid);
    return;
  }
  if (!stat || stat->kernel_thread || !options_.filter.wants_pid(pid) ||
      !may_select_name(options_.filter.name_globs, {.comm = stat->comm, .exe = view.image.exe}) ||
      silent_.contains({pid, stat->start_ticks})) {
    --asked_;
    if (stat) known_.insert(pid);
    return;
  }
  const std::uint32_t user = view.image.user;
  if (users_[user].asked < max_asked_of_user()) return ask_about(pid, user, *stat);
  --asked_;
  users_[user].waiting.emplace_back(pid, *stat);
}

void HostScan::ask_about(std::int32_t pid, std::uint32_t user, const ProcessStat& known) {
  ++users_[user].asked;
  context_.queries.ask({.pid = pid, .image = true, .mapped_rings = true}, user,
                       [this, pid, asked_ns = context_.clock(), user, known](ProcessView answer) {
                         --asked_;
                         --users_[user].asked;
                         if (answer.no_answer) return add_silent(pid, user, known);
                         add_answer(pid, asked_ns, std::move(answer));
                       });
}

void HostScan::add_answer(std::int32_t pid, std::uint64_t asked_ns, ProcessView view) {
  if (!view.stat) return;
  known_.insert(pid);
  found_.push_back({.pid = pid,
                    .asked_ns = asked_ns,
                    .answered_ns = context_.clock(),
                    .image = std::move(view.image),
                    .rings = std::move(view.rings)});
}

void HostScan::add_silent(std::int32_t pid, std::uint32_t user, const ProcessStat& stat) {
  if (silent_.size() < max_silent && silent_.emplace(pid, stat.start_ticks).second)
    listener_.on_silent(pid, user, stat);
  else
    ++unreported_;
}

std::optional<HostScan::Found> HostScan::take_found(std::uint64_t before_ns) {
  if (found_.empty() || found_.front().answered_ns >= before_ns) return std::nullopt;
  Found found = std::move(found_.front());
  found_.pop_front();
  return found;
}

bool HostScan::take_again(Found& found) {
  if (++found.tries > max_tries) return false;
  found.answered_ns = context_.clock() + retry_ns;
  found_.push_back(std::move(found));
  return true;
}

void HostScan::forget_found(std::int32_t pid, std::uint64_t until_ns) {
  known_.erase(pid);
  std::erase_if(found_, [&](const Found& found) { return found.pid == pid && found.asked_ns < until_ns; });
}

void HostScan::forget_silent(std::int32_t pid) {
  std::erase_if(silent_, [pid](const auto& process) { return process.first == pid; });
}

}  // namespace rtev
