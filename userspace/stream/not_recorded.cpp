// SPDX-License-Identifier: MIT
#include "stream/not_recorded.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/escape.hpp"
#include "base/with_and.hpp"

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

std::string NotRecorded::text(std::initializer_list<EventKind> wanted) const {
  std::vector<std::string> none, some;
  for (const KindWord& word : kind_words()) {
    const bool is_wanted = wanted.size() == 0 || std::ranges::find_first_of(word.kinds, wanted) != word.kinds.end();
    if (!is_wanted || std::ranges::none_of(word.kinds, [this](EventKind kind) { return has(kind); })) continue;
    const bool is_seen =
        std::ranges::any_of(word.kinds, [this](EventKind kind) { return seen[static_cast<std::size_t>(kind)]; });
    (is_seen ? some : none).emplace_back(word.name);
  }
  if (none.empty() && some.empty()) return {};
  if (none.empty()) return fmt::format("not all {} were recorded ({})", with_and(some), escaped(selection));
  return fmt::format("{} were not recorded{}{} ({})", with_and(none), some.empty() ? "" : ", nor all ", with_and(some),
                     escaped(selection));
}

}  // namespace rtev
