// SPDX-License-Identifier: MIT
#include "flight/trigger_limits.hpp"

#include <functional>
#include <utility>

#include "base/enum_names.hpp"

namespace rtev::flight {
namespace {

std::uint64_t since(std::uint64_t now_ns, std::uint64_t then_ns) {
  return now_ns > then_ns ? now_ns - then_ns : 0;
}

/// Programs can have any names: those that matter no more are forgotten.
template <typename Times, typename Time>
void forget_old(Times& times, std::size_t max, std::uint64_t now_ns, std::uint64_t after_ns, Time last_ns) {
  if (times.size() < max) return;
  std::erase_if(times, [&](const auto& entry) { return since(now_ns, last_ns(entry.second)) >= after_ns; });
  if (times.size() >= max) times.clear();
}

}  // namespace

std::string_view to_string(Suppressed reason) {
  static constexpr std::string_view names[]{"not-armed", "repeated", "cooldown", "max-dumps"};
  return name_at(names, reason);
}

std::optional<Suppressed> TriggerLimits::note(std::size_t condition, const std::string& program,
                                              std::uint64_t time_ns) {
  forget_old(met_, max_programs, time_ns, options_.rearm_ns, [](const Met& met) { return met.last_ns; });
  const auto [entry, is_new] = met_.try_emplace({condition, program}, Met{.last_ns = time_ns});
  Met& met = entry->second;
  if (is_new || since(time_ns, std::exchange(met.last_ns, time_ns)) >= options_.rearm_ns) {
    met.counted_ns.reset();
    return std::nullopt;
  }
  if (met.counted_ns && since(time_ns, *met.counted_ns) < options_.rearm_ns) return Suppressed::ongoing;
  met.counted_ns = time_ns;
  return Suppressed::repeated;
}

std::optional<Suppressed> TriggerLimits::check(std::size_t condition, const std::string& program,
                                               std::uint64_t time_ns) {
  if (time_ns < armed_ns_) return Suppressed::not_armed;  // not noted: trouble that goes on counts once it is armed
  if (const auto again = note(condition, program, time_ns)) return again;
  const auto dumped = dumped_.find(program);
  if (dumped != dumped_.end() && since(time_ns, dumped->second) < options_.cooldown_ns) return Suppressed::cooldown;
  while (!dumps_.empty() && since(time_ns, dumps_.front()) >= options_.period_ns) dumps_.pop_front();
  if (dumps_.size() >= options_.max_dumps) return Suppressed::max_dumps;
  dumps_.push_back(time_ns);
  forget_old(dumped_, max_programs, time_ns, options_.cooldown_ns, std::identity());
  dumped_[program] = time_ns;
  return std::nullopt;
}

}  // namespace rtev::flight
