// SPDX-License-Identifier: MIT
#include "processes/host_scan.hpp"

#include <algorithm>

namespace rtev {
namespace {

/// Processes that were found and not taken yet: each holds descriptors, mostly two. Where there is none left an answer
/// is lost, as if the process were silent.
constexpr std::size_t max_found = 1024;

/// The user of queries about processes whose user is not known yet.
constexpr std::uint32_t unknown_user = UINT32_MAX;

/// Processes that are remembered because they did not answer.
constexpr std::size_t max_silent = 65536;

}  // namespace

void HostScan::begin() {
  is_listing_ = true;
  context_.queries.ask({.all_pids = true}, unknown_user, [this, asked_ns = context_.clock()](ProcessView view) {
    is_listing_ = false;
    if (!view.no_answer) add_listed(std::move(view.pids), asked_ns);
  });
}

void HostScan::add_listed(std::vector<std::int32_t> pids, std::uint64_t asked_ns) {
  left_ = std::move(pids);
  const std::unordered_set<std::int32_t> alive(left_.begin(), left_.end());
  listener_.on_listed(alive, asked_ns);
  std::erase_if(silent_, [&](const auto& process) { return !alive.contains(process.first); });
  if (options_.filter.only_followed) left_.clear();
}

void HostScan::ask_some(std::size_t max_processes) {
  const std::size_t most = std::clamp<std::size_t>(options_.ring_descriptors / 8, 1, max_found);
  for (; max_processes > 0 && !left_.empty() && found_.size() + asked_ < most; --max_processes) {
    const std::int32_t pid = left_.back();
    left_.pop_back();
    if (!options_.filter.wants_pid(pid)) continue;
    ++asked_;
    // First only what every process answers, to know whose it is and whether it is wanted.
    context_.queries.ask({.pid = pid, .user = true}, unknown_user,
                         [this, pid](const ProcessView& view) { look_at(pid, view); });
  }
}

void HostScan::look_at(std::int32_t pid, const ProcessView& view) {
  const auto& stat = view.stat;
  if (!stat || stat->kernel_thread || !options_.filter.wants(pid, stat->comm, false) ||
      silent_.contains({pid, stat->start_ticks})) {
    --asked_;
    return;
  }
  context_.queries.ask(
      {.pid = pid, .image = true, .mapped_rings = true}, view.image.user,
      [this, pid, asked_ns = context_.clock(), user = view.image.user, known = *stat](ProcessView answer) {
        --asked_;
        if (answer.no_answer) return add_silent(pid, user, known);
        add_answer(pid, asked_ns, std::move(answer));
      });
}

void HostScan::add_answer(std::int32_t pid, std::uint64_t asked_ns, ProcessView view) {
  if (!view.stat) return;
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

void HostScan::forget_found(std::int32_t pid, std::uint64_t until_ns) {
  std::erase_if(found_, [&](const Found& found) { return found.pid == pid && found.asked_ns < until_ns; });
}

void HostScan::forget_silent(std::int32_t pid) {
  std::erase_if(silent_, [pid](const auto& process) { return process.first == pid; });
}

}  // namespace rtev
