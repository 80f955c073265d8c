// SPDX-License-Identifier: MIT
#include "stream/not_recorded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/escape.hpp"
#include "base/with_and.hpp"
#include "rtev/names.hpp"

namespace rtev {

const std::vector<KindWord>& kind_words() {
  using enum EventKind;
  static const std::vector<KindWord> words{
      {"phase", "GC phases", {begin, end}},
      {"counter", "counters", {counter}},
      {"alloc", "sizes of allocated blocks", {alloc}},
      {"lifecycle", "starts and ends of domains", {lifecycle}},
      {"user", "user events", {user_unit, user_int, user_begin, user_end, user_custom}},
      {"process", "starts and ends of processes", {process}},
      {"switch", "switches of threads", {sched_switch}},
      {"wakeup", "wakeups", {wakeup}},
      {"sample", "stack samples", {sample}},
  };
  return words;
}

std::vector<std::string_view> NotRecorded::words() const {
  std::vector<std::string_view> found;
  for (const KindWord& word : kind_words())
    if (std::ranges::any_of(word.kinds, [this](EventKind kind) { return has(kind); })) found.push_back(word.word);
  return found;
}

std::span<const std::string_view> outermost_phases() {
  static constexpr std::array<std::string_view, 12> phases{"major",
                                                           "stw_leader",
                                                           "stw_handler",
                                                           "interrupt_remote",
                                                           "empty_minor",
                                                           "explicit_gc_set",
                                                           "explicit_gc_stat",
                                                           "explicit_gc_minor",
                                                           "explicit_gc_major",
                                                           "explicit_gc_full_major",
                                                           "explicit_gc_compact",
                                                           "explicit_gc_major_slice"};
  return phases;
}

bool NotRecorded::lacks_phase(std::string_view name) const {
  if (!has_phases()) return false;
  const bool is_any = std::ranges::all_of(phases, [](const Phases& missing) { return missing.none(); });
  const auto is_missing_in = [&](Family family) {
    const auto id = find_phase(family, name);
    const Phases& missing = phases.at(static_cast<std::size_t>(family));
    return id && static_cast<std::size_t>(*id) < missing.size() && missing[static_cast<std::size_t>(*id)];
  };
  return is_any || is_missing_in(Family::before_5_3) || is_missing_in(Family::since_5_3);
}

std::vector<std::string_view> NotRecorded::outermost() const {
  std::vector<std::string_view> missing;
  std::ranges::copy_if(outermost_phases(), std::back_inserter(missing),
                       [this](std::string_view name) { return lacks_phase(name); });
  return missing;
}

std::string NotRecorded::text(std::initializer_list<EventKind> wanted) const {
  std::vector<std::string> none, some;
  std::string without;
  for (const KindWord& word : kind_words()) {
    const bool is_wanted = wanted.size() == 0 || std::ranges::find_first_of(word.kinds, wanted) != word.kinds.end();
    if (!is_wanted || std::ranges::none_of(word.kinds, [this](EventKind kind) { return has(kind); })) continue;
    const bool is_seen =
        std::ranges::any_of(word.kinds, [this](EventKind kind) { return seen[static_cast<std::size_t>(kind)]; });
    (is_seen ? some : none).emplace_back(word.name);
    if (is_seen && word.kinds.front() == EventKind::begin) without = without_outermost();
  }
  if (none.empty() && some.empty()) return {};
  if (none.empty()) return fmt::format("not all {} were recorded ({}{})", with_and(some), escaped(selection), without);
  return fmt::format("{} were not recorded{}{} ({}{})", with_and(none), some.empty() ? "" : ", nor all ",
                     with_and(some), escaped(selection), without);
}

/// "; without major, stw_leader and 10 more", or nothing.
std::string NotRecorded::without_outermost() const {
  constexpr std::size_t max_named = 3;
  std::vector<std::string> names;
  for (const std::string_view name : outermost()) names.emplace_back(name);
  if (names.empty()) return {};
  if (names.size() > max_named) {
    const std::string more = fmt::format("{} more", names.size() - max_named + 1);
    names.resize(max_named - 1);
    names.push_back(more);
  }
  return "; without " + with_and(names);
}

}  // namespace rtev
