// SPDX-License-Identifier: MIT
#include "analysis/pauses/cause_groups.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/report_text.hpp"
#include "base/with_and.hpp"

namespace rtev {
namespace {

/// 0 for what is shorter than a microsecond, then 1 µs, 2 µs, 5 µs, 10 µs, ...
constexpr std::uint64_t step_ns(std::size_t step) {
  if (step == 0) return 0;
  constexpr std::array<std::uint64_t, 3> digits{1, 2, 5};
  std::uint64_t ns = 1'000 * digits[(step - 1) % 3];
  for (std::size_t decade = (step - 1) / 3; decade > 0; --decade) ns *= 10;
  return ns;
}

CauseKey key_of(const PauseDetails& pause, const Blame& blame) {
  CauseKey key{.comm = pause.comm, .family = pause.domain.family, .cause = blame.cause, .why = blame.why};
  if (blame.domain) key.domain = blame.domain->domain;
  if (blame.cause == Cause::work || blame.cause == Cause::unknown) {
    const auto barriers = blame.cause == Cause::work ? Barriers::left_out : Barriers::counted;
    if (const auto* const phase = main_phase(pause, barriers)) key.phase = phase->phase;
  }
  return key;
}

/// " behind \"doms\" and others": those that had the CPU for most of the time. "" if that is unknown.
std::string behind(const CauseGroup& group) {
  constexpr std::size_t max_named = 2;
  const auto& holders = group.holders;
  std::uint64_t all = group.unknown_holders_ns + group.unseen_ns, had = 0;
  for (const CpuHolder& holder : holders) all += holder.ns;
  std::size_t named = 0;
  while (named < std::min(holders.size(), max_named) && had < all - all / 10) had += holders[named++].ns;
  if (had < all - all / 2 || named == 0) return "";
  std::vector<std::string> names;
  for (const CpuHolder& holder : std::span(holders).first(named))
    names.push_back(holder.comm.empty() ? "its own threads" : fmt::format("{}", Quoted{holder.comm}));
  if (had < all - all / 10) names.emplace_back("others");
  return " behind " + with_and(names);
}

/// The words for a missing CPU.
void add_no_cpu(TextBuffer& out, const CauseGroup& group) {
  std::uint64_t others = group.unknown_holders_ns;
  for (const CpuHolder& holder : group.holders) others += holder.ns;
  if (const std::string holders = behind(group); !holders.empty()) {
    out.add("no CPU", holders);
  } else if (group.idle_ns > group.unknown_holders_ns + group.unseen_ns) {
    out.add("no CPU: it was idle, as with a limit on CPU time");
  } else if (others > 0 && others >= group.unseen_ns) {
    out.add("no CPU: other threads had it");
  } else {
    out.add("no CPU: who had it is unknown");
  }
}

/// "12.1ms to 31.2ms", of the time that the cause explains.
std::string time_text(const CauseGroup& group) {
  const std::string least = fmt::format("{}", Duration{group.least_ns});
  const std::string greatest = fmt::format("{}", Duration{group.greatest_ns});
  return least == greatest ? least : least + " to " + greatest;
}

/// What the other domain did instead.
std::string_view late_reason(Why why, bool slow) {
  switch (why) {
    case Why::no_cpu:
      return ": it waited for a CPU";
    case Why::backup_thread:
      return ": it was in a blocking section";
    case Why::blocked:
      return ": it was blocked";
    case Why::leader:
      return ": it leads, and took long to ask the others";
    case Why::ran:
      return slow ? ": it had most to do" : ": it ran on to its next safepoint";
    case Why::none:
    case Why::late_events:
    case Why::lost_events:
    case Why::unknown:
      break;
  }
  return "";
}

}  // namespace

void append(TextBuffer& out, const CauseName& name) {
  if (name.with_program && name.group.several_processes) {
    print(out, "{}: ", Escaped{name.group.key.comm});
  } else if (name.with_program) {
    print(out, "{}: ", ProcessName{name.group.key.comm, name.group.worst->domain.pid});
  }
  const CauseKey& key = name.group.key;
  const bool slow = key.cause == Cause::slow_domain;
  const std::string time = name.with_time ? time_text(name.group) : std::string();
  const auto add_time = [&] {
    if (!time.empty()) print(out, " ({})", time);
  };
  const auto add_phase = [&](std::string_view before) {
    if (key.phase) print(out, "{}{}", before, PhaseName{name.group.worst->domain.family, *key.phase});
  };
  // The time is that of the cause, not of the phase: it stands before the phase.
  switch (key.cause) {
    case Cause::work:
      out.add("own work");
      add_time();
      return add_phase(", most of the pause in ");
    case Cause::no_cpu:
      add_no_cpu(out, name.group);
      break;
    case Cause::late_domain:
    case Cause::slow_domain:
      out.add(key.domain < 0 ? "another domain" : fmt::format("domain {}", key.domain));
      print(out, " late to {}{}", slow ? "end its minor collection" : "stop", late_reason(key.why, slow));
      if (key.why == Why::no_cpu) out.add(behind(name.group));
      break;
    case Cause::blocked_in_section:
      out.add("blocked in a stop-the-world section: at a later barrier, or by a lock");
      break;
    case Cause::blocked:
      out.add("blocked, not for other domains");
      break;
    case Cause::unknown:
      // Without any scheduler events the report says so once.
      if (name.seen == SwitchesSeen::none && key.phase) {
        out.add(time);
        return add_phase(time.empty() ? "most of the pause in " : ", most of it in ");
      }
      out.add("unknown");
      add_time();
      if (name.seen != SwitchesSeen::none) out.add(": ", unknown_reason(key.why));
      return add_phase(", most of the pause in ");
  }
  add_time();
}

void CauseGroups::Tally::add(const Tally& other) {
  count += other.count;
  total_ns += other.total_ns;
  least_ns = std::min(least_ns, other.least_ns);
  greatest_ns = std::max(greatest_ns, other.greatest_ns);
}

std::size_t CauseGroups::step_of(std::uint64_t ns) {
  std::size_t step = 0;
  while (step + 1 < step_count && step_ns(step + 1) <= ns) ++step;
  return step;
}

void CauseGroups::add(const PauseDetails& pause) {
  const auto is_settled = [](const PauseDetails& one) {
    return std::ranges::all_of(one.sections, [](const PauseSection& part) { return part.section->is_over(); });
  };
  std::erase_if(open_, [&](const PauseDetails& one) {
    if (!is_settled(one)) return false;
    count(one);
    return true;
  });
  if (is_settled(pause)) return count(pause);
  open_.push_back(pause);
  if (open_.size() <= max_open) return;
  count(open_.front());
  open_.pop_front();
}

void CauseGroups::count(const PauseDetails& pause) {
  const Blame blame = blame_of(pause);
  const std::uint64_t ns = pause.duration_ns();
  const Tally one{.count = 1, .total_ns = ns, .least_ns = blame.ns, .greatest_ns = blame.ns};
  const std::size_t step = step_of(ns);
  all_[step].add(one);
  const auto [group, is_new] = groups_.try_emplace(key_of(pause, blame));
  group->second.steps[step].add(one);
  add_holders(group->second, step, pause, blame);
  group->second.several_processes |= !is_new && group->second.worst.domain.process != pause.domain.process;
  if (is_new || ns > group->second.worst.duration_ns()) group->second.worst = pause;
  if (groups_.size() > max_groups) drop_least();
}

void CauseGroups::add_holders(Group& group, std::size_t step, const PauseDetails& pause, const Blame& blame) {
  const auto add = [&](const CpuWait& wait) {
    const bool is_certain = wait.had == CpuWait::Had::throughout;
    if (!wait.is_of_others()) {
      (wait.by && is_certain ? group.idle : group.unseen)[step] += wait.ns;
      return;
    }
    if (!is_certain) {
      group.unknown_holders[step] += wait.ns;
      return;
    }
    const std::string_view comm = wait.by->pid == pause.domain.pid ? std::string_view() : wait.by->comm();
    auto known = group.holders.find(comm);
    if (known == group.holders.end()) {
      if (group.holders.size() == max_holders) {
        group.unknown_holders[step] += wait.ns;
        return;
      }
      known = group.holders.try_emplace(std::string(comm)).first;
    }
    known->second[step] += wait.ns;
  };
  if (blame.cause == Cause::no_cpu) {
    for (const SchedulingDetail::CpuCompetitor& competitor : pause.scheduling.competitors()) add(competitor.wait);
  } else if (blame.why == Why::no_cpu && blame.domain != nullptr) {
    add(blame.domain->before.longest_wait);
  }
}

std::uint64_t CauseGroups::sum_from(const Group::Times& times, std::size_t first_step) {
  return std::accumulate(times.begin() + static_cast<std::ptrdiff_t>(first_step), times.end(), std::uint64_t{0});
}

std::vector<CpuHolder> CauseGroups::holders_of(const Group& group, std::size_t first_step) {
  std::vector<CpuHolder> holders;
  for (const auto& [comm, steps] : group.holders) {
    const std::uint64_t ns = sum_from(steps, first_step);
    if (ns > 0) holders.push_back({.comm = comm, .ns = ns});
  }
  std::ranges::sort(holders, [](const CpuHolder& a, const CpuHolder& b) {
    return std::pair{b.ns, std::string_view(a.comm)} < std::pair{a.ns, std::string_view(b.comm)};
  });
  return holders;
}

/// Forgets the group whose longest pause is shortest.
void CauseGroups::drop_least() {
  groups_.erase(
      std::ranges::min_element(groups_, {}, [](const auto& group) { return group.second.worst.duration_ns(); }));
}

void CauseGroups::lose(const DomainLife& domain, const Loss& loss) {
  for (auto& [key, group] : groups_) group.worst.lose(domain, loss);
  for (PauseDetails& pause : open_) pause.lose(domain, loss);
}

LongPauses CauseGroups::longest(std::uint64_t min_ns) {
  for (const PauseDetails& pause : std::exchange(open_, {})) count(pause);
  std::size_t first = 0;
  LongPauses found{.least_ns = min_ns};
  if (min_ns == 0) {
    std::uint64_t count = 0;
    first = step_count;
    while (first > 0 && count < enough) count += all_[--first].count;
    found.least_ns = count < enough ? 0 : step_ns(first);
  }
  const auto sum_of = [first](const Steps& steps) {
    Tally sum;
    for (std::size_t step = first; step < step_count; ++step) sum.add(steps[step]);
    return sum;
  };
  found.count = found.ungrouped = sum_of(all_).count;
  for (const auto& [key, group] : groups_) {
    const Tally sum = sum_of(group.steps);
    if (sum.count == 0) continue;
    found.ungrouped -= sum.count;
    found.groups.push_back({.key = key,
                            .count = sum.count,
                            .total_ns = sum.total_ns,
                            .least_ns = sum.least_ns,
                            .greatest_ns = sum.greatest_ns,
                            .worst = &group.worst,
                            .several_processes = group.several_processes,
                            .holders = holders_of(group, first),
                            .unknown_holders_ns = sum_from(group.unknown_holders, first),
                            .unseen_ns = sum_from(group.unseen, first),
                            .idle_ns = sum_from(group.idle, first)});
  }
  std::ranges::sort(found.groups, [](const CauseGroup& a, const CauseGroup& b) {
    return std::pair{b.total_ns, a.key} < std::pair{a.total_ns, b.key};
  });
  return found;
}

}  // namespace rtev
