// SPDX-License-Identifier: MIT
#include "stream/losses.hpp"

#include <algorithm>

#include "base/text_format.hpp"

namespace rtev {

Accounting words_of_all(const Registry& registry) {
  Accounting words = registry.others().words;
  for (const ProcessInfo& info : registry.processes()) words += info.words;
  return words;
}

RunSummary with_scheduler_gaps(RunSummary summary, std::uint64_t gaps) {
  if (gaps > 0) summary.drops.push_back({.kind = std::string(RunSummary::scheduler_gaps), .count = gaps});
  return summary;
}

std::vector<Lack> lacks_of(const RunSummary& summary, const Registry& registry) {
  using enum Lack::Of;
  std::vector<Lack> lacks;
  const auto add = [&](Lack::Of of, std::uint64_t count, std::string_view singular, std::string_view plural) {
    if (count > 0) lacks.push_back({of, count, singular, plural});
  };
  const auto drops = [&](std::initializer_list<std::string_view> kinds) {
    std::uint64_t count = 0;
    for (const RunSummary::Drop& drop : summary.drops)
      if (std::ranges::find(kinds, drop.kind) != kinds.end()) count += drop.count;
    return count;
  };
  // All events of such a ring may be missing: that is more than lost words say.
  // All events of such a ring may be missing: that is more than lost words say.
  const Counted rings = rings_missed(summary.rings_missed);
  add(events, rings.count, rings.singular, rings.plural);
  const Accounting words = words_of_all(registry);
  add(events, words.lost, "lost ring word", "lost ring words");
  add(events, words.corrupt, "corrupt ring word", "corrupt ring words");
  add(events, words.unread, "unread ring word", "unread ring words");
  add(scheduler, drops({"switch", "wakeup", RunSummary::scheduler}), "scheduler event", "scheduler events");
  add(Lack::Of::scheduler_gaps, drops({RunSummary::scheduler_gaps}), "gap in the scheduler events of a thread",
      "gaps in the scheduler events of threads");
  add(events, drops({"exec", "fork", "exit"}), "start or end of a process", "starts and ends of processes");
  add(events, drops({"ring", "probe"}), "announcement of a ring or a pause", "announcements of rings and pauses");
  add(events, drops({"untracked"}), "process or thread that was not traced",
      "processes or threads that were not traced");
  add(events, drops({"save"}), "part of the ring of an ending program", "parts of rings of ending programs");
  add(events, drops({"probed"}), "event of a program without a ring", "events of programs without a ring");
  add(events, drops({RunSummary::limited}), "gap of probes", "gaps of probes");
  add(events, drops({RunSummary::unprobed}), "process that could not be probed", "processes that could not be probed");
  add(events, drops({RunSummary::unwritten}), "event that was not written", "events that were not written");
  const std::uint64_t sleeps = drops({RunSummary::sample_off_cpu}),
                      allocations = drops({RunSummary::sample_allocation}), all = drops({RunSummary::sample});
  add(samples, all - std::min(all, sleeps + allocations), "stack sample", "stack samples");
  add(samples, sleeps, "stack sample of a sleep", "stack samples of sleeps");
  add(samples, allocations, "stack sample of an allocation", "stack samples of allocations");
  add(samples, drops({RunSummary::unsampled}), "process that was not sampled", "processes that were not sampled");
  add(samples, drops({"tables"}), "table of code", "tables of code");
  add(order, summary.late, "event out of order", "events out of order");
  return lacks;
}

std::string LostWords::text() const {
  std::string text;
  if (words > 0) text = fmt::format("{} lost", Counted{words, "ring word was", "ring words were"});
  if (gaps > 0)
    text += fmt::format("{}tracing by probes paused {}", text.empty() ? "" : " and ", Counted{gaps, "time", "times"});
  return text;
}

bool lacks_events(const std::vector<Lack>& lacks) {
  return std::ranges::find(lacks, Lack::Of::events, &Lack::of) != lacks.end();
}

std::string lacks_text(const std::vector<Lack>& lacks) {
  std::string text;
  for (const Lack& lack : lacks)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", Counted{lack.count, lack.singular, lack.plural});
  return text;
}

}  // namespace rtev
