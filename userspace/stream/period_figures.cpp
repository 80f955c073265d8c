// SPDX-License-Identifier: MIT
#include "stream/period_figures.hpp"

#include <algorithm>
#include <utility>

namespace rtev {
namespace {

std::uint64_t since(std::uint64_t now, std::uint64_t before) {
  return now - std::min(now, before);
}

/// Without unread words. What was written is the sum of the others, so that the figures stay balanced.
Accounting settled_since(const Accounting& now, const Accounting& before) {
  Accounting part{.delivered = since(now.delivered, before.delivered),
                  .lost = since(now.lost, before.lost),
                  .before_attach = since(now.before_attach, before.before_attach),
                  .corrupt = since(now.corrupt, before.corrupt),
                  .events = since(now.events, before.events)};
  part.written = part.delivered + part.lost + part.before_attach + part.corrupt;
  return part;
}

MissedRings missed_since(const MissedRings& now, const MissedRings& before) {
  return {.file_system = since(now.file_system, before.file_system),
          .no_answer = since(now.no_answer, before.no_answer),
          .memory = since(now.memory, before.memory),
          .other_user = since(now.other_user, before.other_user),
          .too_large = since(now.too_large, before.too_large),
          .gone = since(now.gone, before.gone)};
}

Accounting part_of(const Accounting& now, const Accounting& before, bool is_last) {
  Accounting part = settled_since(now, before);
  if (is_last) part += {.written = now.unread, .unread = now.unread};
  return part;
}

}  // namespace

void PeriodFigures::begin(std::uint64_t time_ns, const RunSummary& so_far, const Registry& registry) {
  Base next{.time_ns = time_ns, .so_far = so_far, .others = registry.others()};
  for (const auto& [index, info] : registry.indexed_processes()) {
    const auto known = base_.processes.find(index);
    next.processes.emplace(index, ProcessBase{.words = info.words,
                                              .missed = info.missed,
                                              .left_alone = info.left_alone,
                                              .ended = info.ended,
                                              .ended_before = known != base_.processes.end() && known->second.ended});
  }
  begin(std::move(next));
}

void PeriodFigures::begin(Base base) {
  first_ = false;
  base_ = std::move(base);
}

RunSummary PeriodFigures::summary(const RunSummary& so_far) const {
  RunSummary part = so_far;
  if (first_) return part;
  part.start_ns = base_.time_ns;
  for (std::size_t kind = 0; kind < part.events.size(); ++kind)
    part.events[kind] = since(so_far.events[kind], base_.so_far.events[kind]);
  part.late = since(so_far.late, base_.so_far.late);
  part.forced = since(so_far.forced, base_.so_far.forced);
  for (std::size_t i = 0; i < std::min(part.drops.size(), base_.so_far.drops.size()); ++i)
    part.drops[i].count = since(part.drops[i].count, base_.so_far.drops[i].count);
  for (RunSummary::Announcer& announcer : part.announcers) {
    const auto before = std::ranges::find(base_.so_far.announcers, announcer.pid, &RunSummary::Announcer::pid);
    if (before != base_.so_far.announcers.end()) announcer.dropped = since(announcer.dropped, before->dropped);
  }
  std::erase_if(part.announcers, [](const RunSummary::Announcer& announcer) { return announcer.dropped == 0; });
  part.rings_missed = since(so_far.rings_missed, base_.so_far.rings_missed);
  part.own_cpu_ns = since(so_far.own_cpu_ns, base_.so_far.own_cpu_ns);
  return part;
}

PeriodFigures::Processes PeriodFigures::processes(const Registry& run, bool is_last) const {
  std::map<ProcessIndex, ProcessInfo> list;
  Registry::Others others = run.others();
  // A process that was added to the others meanwhile brought the words with it that it had when this part began.
  Accounting others_before = base_.others.words;
  auto gone = base_.processes.begin();
  const auto skip_to = [&](ProcessIndex index) {
    for (; gone != base_.processes.end() && gone->first < index; ++gone) others_before += gone->second.words;
    return gone != base_.processes.end() && gone->first == index ? &(gone++)->second : nullptr;
  };
  for (const auto& [index, info] : run.indexed_processes()) {
    const ProcessBase* const base = skip_to(index);
    if (base != nullptr && base->ended_before) continue;
    ProcessInfo& part = list.emplace(index, info).first->second;
    part.words = part_of(info.words, base != nullptr ? base->words : Accounting{}, is_last);
    if (base == nullptr) continue;
    part.missed = missed_since(info.missed, base->missed);
    part.left_alone = {.times = since(info.left_alone.times, base->left_alone.times),
                       .ns = since(info.left_alone.ns, base->left_alone.ns)};
  }
  skip_to(UINT32_MAX);
  others = {.count = since(others.count, base_.others.count),
            .replaced = since(others.replaced, base_.others.replaced),
            .words = part_of(others.words, others_before, is_last)};
  return {.list = std::move(list), .others = others};
}

Registry PeriodFigures::registry(const Registry& run, bool is_last) const {
  Processes kept = processes(run, is_last);
  Registry part;
  part.restore_list(std::move(kept.list), kept.others);
  for (std::uint32_t slot = 1; slot < ring_slots; ++slot)
    if (const RingInfo* const ring = run.ring(slot)) part.restore_ring(slot, *ring);
  return part;
}

}  // namespace rtev
