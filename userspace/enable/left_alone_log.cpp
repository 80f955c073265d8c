// SPDX-License-Identifier: MIT
#include "enable/left_alone_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rtev::enable {
namespace {

std::string line_about(std::uint32_t user, std::uint64_t count) {
  return fmt::format("events of {} more program{} of user {} not switched on or off: left alone, as the last one named",
                     count, count == 1 ? "" : "s", user);
}

}  // namespace

bool LeftAloneLog::add(std::uint32_t user, std::uint64_t now_ns) {
  const auto [own, is_new] = by_user_.try_emplace(user, OfUser{.begin_ns = now_ns});
  const bool is_over = own->second.count == 0 && now_ns >= own->second.begin_ns + interval_ns;
  if (is_over) own->second.begin_ns = now_ns;
  if (is_new || is_over) return true;
  ++own->second.count;
  return false;
}

std::optional<std::uint64_t> LeftAloneLog::next_ns() const {
  std::optional<std::uint64_t> next;
  for (const auto& [user, own] : by_user_)
    if (own.count > 0) next = std::min(next.value_or(UINT64_MAX), own.begin_ns + interval_ns);
  return next;
}

std::vector<std::string> LeftAloneLog::take_due(std::uint64_t now_ns) {
  std::vector<std::string> lines;
  for (auto& [user, own] : by_user_) {
    if (own.count == 0 || now_ns < own.begin_ns + interval_ns) continue;
    lines.push_back(line_about(user, std::exchange(own.count, 0)));
    own.begin_ns = now_ns;
  }
  return lines;
}

std::vector<std::string> LeftAloneLog::take_all() {
  return take_due(UINT64_MAX);
}

}  // namespace rtev::enable
