// SPDX-License-Identifier: MIT
#include "enable/user_costs.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "enable/as_program.hpp"

namespace rtev::enable {

void UserCosts::add(std::uint32_t user, std::uint64_t cpu_ns, std::uint64_t wall_ns, int unanswered,
                    std::uint64_t now_ns) {
  Cost& cost = by_user_[user];
  // What waits keeps the programs of others waiting, but costs no CPU: it counts two fifths.
  cost.time.use(std::max(cpu_ns, wall_ns * 2 / 5), now_ns);
  if (unanswered == 0) return;
  cost.unanswered += unanswered;
  cost.forget_ns = now_ns + cost.memory_ns;
}

bool UserCosts::has_time_for(std::uint32_t user, std::uint64_t now_ns) const {
  const auto cost = by_user_.find(user);
  return cost == by_user_.end() || cost->second.time.has_left(now_ns);
}

std::uint64_t UserCosts::unpaid_ns(std::uint32_t user, std::uint64_t now_ns) const {
  const auto cost = by_user_.find(user);
  return cost == by_user_.end() ? 0 : cost->second.time.unpaid_ns(now_ns);
}

int UserCosts::unanswered(std::uint32_t user) const {
  const auto cost = by_user_.find(user);
  return cost == by_user_.end() ? 0 : cost->second.unanswered;
}

void UserCosts::forget(std::uint32_t user, std::uint64_t now_ns) {
  const auto found = by_user_.find(user);
  if (found == by_user_.end()) return;
  Cost& cost = found->second;
  if (cost.unanswered == 0 || now_ns < cost.forget_ns) return;
  cost.silent.clear();
  cost.unanswered = 0;
  cost.memory_ns = std::min(2 * cost.memory_ns, last_memory_ns);
}

UserCosts::Charge::Charge(UserCosts& costs, std::uint32_t user)
    : costs_(costs),
      user_(user),
      begin_ns_(monotonic_ns()),
      begin_cpu_ns_(thread_cpu_ns()),
      begin_unanswered_(unanswered_children()) {}

UserCosts::Charge::~Charge() {
  const std::uint64_t now = monotonic_ns();
  costs_.add(user_, thread_cpu_ns() - begin_cpu_ns_, now - begin_ns_, unanswered_children() - begin_unanswered_, now);
}

}  // namespace rtev::enable
