// SPDX-License-Identifier: MIT
#include "flight/trigger_limits.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/enum_names.hpp"

namespace rtev::flight {
namespace {

std::uint64_t since(std::uint64_t now_ns, std::uint64_t then_ns) {
  return now_ns > then_ns ? now_ns - then_ns : 0;
}

/// Programs of a user can have any names: those that matter no more are forgotten.
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

std::optional<Suppressed> TriggerLimits::note(std::size_t condition, const Program& program, std::uint64_t time_ns) {
  auto& met_of_user = users_[program.user].met;
  forget_old(met_of_user, max_programs, time_ns, options_.rearm_ns, [](const Met& met) { return met.last_ns; });
  const auto [entry, is_new] = met_of_user.try_emplace({condition, program.name}, Met{.last_ns = time_ns});
  Met& met = entry->second;
  if (is_new || since(time_ns, std::exchange(met.last_ns, time_ns)) >= options_.rearm_ns) {
    met.counted_ns.reset();
    return std::nullopt;
  }
  if (met.counted_ns && since(time_ns, *met.counted_ns) < options_.rearm_ns) return Suppressed::ongoing;
  met.counted_ns = time_ns;
  return Suppressed::repeated;
}

std::optional<Suppressed> TriggerLimits::check(std::size_t condition, const Program& program, std::uint64_t time_ns,
                                               const std::function<std::size_t()>& users) {
  if (time_ns < armed_ns_) return Suppressed::not_armed;  // not noted: trouble that goes on counts once it is armed
  if (const auto again = note(condition, program, time_ns)) return again;
  User& user = users_[program.user];
  const auto dumped = user.dumped.find(program.name);
  if (dumped != user.dumped.end() && since(time_ns, dumped->second) < options_.cooldown_ns) return Suppressed::cooldown;
  if (!has_room(program.user, time_ns, users)) return Suppressed::max_dumps;
  user.dumps.push_back(time_ns);
  forget_old(user.dumped, max_programs, time_ns, options_.cooldown_ns, std::identity());
  user.dumped[program.name] = time_ns;
  return std::nullopt;
}

/// What others leave of their shares stays for them: when they need it is not known. Who had no dump yet gets one, also
/// when those who were there before have used all.
bool TriggerLimits::has_room(std::uint32_t user, std::uint64_t time_ns, const std::function<std::size_t()>& users) {
  std::size_t dumps = 0, dumps_of_user = 0;
  for (auto& [one, of_user] : users_) {
    while (!of_user.dumps.empty() && since(time_ns, of_user.dumps.front()) >= options_.period_ns)
      of_user.dumps.pop_front();
    dumps += of_user.dumps.size();
    if (one == user) dumps_of_user = of_user.dumps.size();
  }
  const std::size_t share = std::max<std::size_t>(1, options_.max_dumps / std::max<std::size_t>(1, users()));
  if (dumps_of_user == 0) return dumps < 2 * options_.max_dumps;
  return dumps < options_.max_dumps && dumps_of_user < share;
}

}  // namespace rtev::flight
