// SPDX-License-Identifier: MIT
#include "session/live/ringless.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "rtev/names.hpp"

namespace rtev {
namespace {

/// How long events may wait for their process to come into view: its program is being inspected, or it is not traced.
constexpr std::uint64_t placing_timeout_ns = 500'000'000;

/// Words of a message in a ring.
constexpr std::uint64_t short_words = 2, long_words = 3;

EventKind kind_of(std::uint8_t emitter) {
  switch (emitter) {
    case RTEV_EMIT_BEGIN:
      return EventKind::begin;
    case RTEV_EMIT_END:
      return EventKind::end;
    case RTEV_EMIT_COUNTER:
      return EventKind::counter;
    default:
      return EventKind::lifecycle;
  }
}

}  // namespace

Ringless::Ringless(kernel::RinglessSource& source, kernel::UprobePrograms& programs, Context context,
                   const ProcessFilter& filter)
    : source_(source),
      probes_(programs, context.processes, context.tasks, context.run_later, std::move(context.care)),
      context_(std::move(context)),
      pids_(filter.pids),
      is_filtered_(!filter.pids.empty() || !filter.name_globs.empty()),
      placing_(context_.tasks) {}

Ringless::~Ringless() = default;

bool Ringless::read() {
  records_.erase(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(placed_));
  placed_ = 0;
  const std::size_t before = records_.size();
  source_.read([this](const rtev_probed& record) { records_.push_back(record); });
  const bool any = records_.size() > before;
  std::ranges::sort(records_, {}, &rtev_probed::time_ns);
  return any;
}

void Ringless::place_until(std::uint64_t time_ns) {
  for (; placed_ < records_.size() && records_[placed_].time_ns < time_ns; ++placed_) {
    if (!place(records_[placed_])) waiting_.push_back(records_[placed_]);
  }
}

/// Stages a record as an event. False if it has to wait.
bool Ringless::place(const rtev_probed& record) {
  const auto image = context_.processes.current_image(static_cast<std::int32_t>(record.tgid));
  if (!image || record.time_ns < image->began_ns) return false;
  const bool is_all = probes_.reports_all(record.binary, record.time_ns);
  const bool missed_some = !is_all && image->began_ns > context_.start_ns;
  Probed* const probed = find_or_add(image->index, record.time_ns,
                                     {.binary = record.binary,
                                      .user = image->user,
                                      .since_ns = missed_some ? image->began_ns : record.time_ns,
                                      .missed_some = missed_some});
  if (probed == nullptr) {
    ++figures_.unplaced;
    return true;
  }
  if (record.lost_words > 0) lose(*probed, record.domain, record.time_ns, LossReason::overflow, record.lost_words);
  if (record.type == RTEV_PROBED_END) return true;
  if (record.type == RTEV_PROBED_RESUMED && probed->paused_ns < record.time_ns) {
    // If probes were detached, too, it is reported when they are attached again.
    if (is_all && probed->paused_ns != 0) lose_unprobed(*probed, record.time_ns);
    probed->paused_ns = 0;
  }
  const EventKind kind = kind_of(record.emitter);
  const auto is_about = [&](Lifecycle what) {
    return kind == EventKind::lifecycle && record.id == static_cast<std::uint16_t>(what);
  };
  Domain& domain = probed->domains.try_emplace(record.domain, Domain{.last_ns = probed->since_ns}).first->second;
  if (domain.missed_some_since && !is_about(Lifecycle::domain_spawn))
    lose(*probed, record.domain, record.time_ns, LossReason::unprobed, 0);
  domain.has_ended = is_about(Lifecycle::domain_terminate);
  domain.missed_some_since = false;
  const std::uint64_t words = kind == EventKind::begin || kind == EventKind::end ? short_words : long_words;
  context_.timeline.push({.time = record.time_ns,
                          .value = record.value,
                          .source = Source{probed->slot, record.domain}.pack(),
                          .id = record.id,
                          .kind = kind,
                          .flags = 0},
                         {});
  probed->words += {.written = words, .delivered = words, .events = 1};
  // Another thread may have written an event as the pause began.
  if (is_all && probed->paused_ns == 0) domain.last_ns = std::max<std::uint64_t>(domain.last_ns, record.time_ns);
  if (record.type == RTEV_PROBED_LIMITED) {
    if (probed->paused_ns == 0) probes_.exceeded_limit(record.binary, probed->user);
    probed->paused_ns = record.time_ns;
  }
  return true;
}

/// True if events may have been missed, because of a pause or since not all probes were attached, that no loss reports
/// so far.
bool Ringless::misses_some(const Probed& probed) const {
  return probed.paused_ns != 0 || probes_.is_in_gap(probed.binary) ||
         (probed.missed_some && !probes_.is_attached(probed.binary));
}

/// 0 if all slots are taken.
std::uint32_t Ringless::add_slot(ProcessIndex process) {
  return context_.registry.add_ring(
      {.process = process, .domains = RTEV_MAX_DOMAINS, .producer = {}, .user_event_name = {}});
}

/// Null if all slots are taken.
Ringless::Probed* Ringless::find_or_add(ProcessIndex process, std::uint64_t time_ns, const Probed& first) {
  const auto known = probed_.find(process);
  if (known != probed_.end()) return &known->second;
  const std::uint32_t slot = add_slot(process);
  if (slot == 0) return nullptr;
  Probed& probed = probed_.emplace(process, first).first->second;
  probed.slot = slot;
  RingState& state = context_.registry.process(process).ring;
  if (state == RingState::none) state = RingState::probed;
  context_.events.on_process(time_ns, ProcessAction::probe, {.process = process, .peer = 0, .detail = 0});
  return &probed;
}

void Ringless::lose(Probed& probed, std::uint16_t domain, std::uint64_t time_ns, LossReason reason,
                    std::uint64_t words) {
  const auto known = probed.domains.find(domain);
  const std::uint64_t from_ns = known != probed.domains.end() ? known->second.last_ns : probed.since_ns;
  const Loss loss{.words = words, .from_ns = std::min(from_ns, time_ns), .to_ns = time_ns};
  context_.timeline.push(time_ns, Source{probed.slot, domain}, EventKind::lost, static_cast<std::uint16_t>(reason),
                         loss);
  probed.words += {.written = words, .lost = words};
}

/// Reports that events of any domain may be missing. Domain 0 stands for those without events so far. One that ended
/// has none; whether there was another one with its number since, its next event says.
void Ringless::lose_unprobed(Probed& probed, std::uint64_t time_ns) {
  if (probed.domains.empty()) lose(probed, 0, time_ns, LossReason::unprobed, 0);
  for (auto& [number, domain] : probed.domains) {
    if (domain.has_ended) {
      domain.missed_some_since = true;
      continue;
    }
    lose(probed, number, time_ns, LossReason::unprobed, 0);
    domain.last_ns = std::max(domain.last_ns, time_ns);
  }
  probed.since_ns = time_ns;
  if (probed.paused_ns < time_ns) probed.paused_ns = 0;
}

/// False for a process that is older than the session: what it did before is not part of the stream.
bool Ringless::has_past(const ProcessTable::Ringless& process) const {
  return process.began_then && process.since_ns > context_.start_ns;
}

bool Ringless::is_wanted(std::int32_t pid) const {
  return pids_.empty() || std::ranges::find(pids_, pid) != pids_.end();
}

void Ringless::tick(const Times& times) {
  const std::uint64_t now_ns = times.now_ns;
  take_attached();
  // Later events may belong to an image whose exec record has not been taken yet.
  place_until(std::max(times.records_taken_until_ns, now_ns - placing_timeout_ns));
  std::erase_if(waiting_, [&](const rtev_probed& record) {
    if (place(record)) return true;
    const auto pid = static_cast<std::int32_t>(record.tgid);
    const bool expired = now_ns >= record.time_ns + placing_timeout_ns;
    if (is_wanted(pid) && !expired) return false;
    const auto image = context_.processes.current_image(pid);
    const bool is_untraced = !image || record.time_ns < image->began_ns;
    if (is_filtered_ && is_untraced)
      source_.ignore(pid, record.time_ns);
    else
      ++figures_.unplaced;
    return true;
  });
  const auto waiting = waiting_since();
  placing_.at(waiting ? std::optional(*waiting + placing_timeout_ns) : std::nullopt);
}

/// Once the probes of a binary are attached, the time before is a loss for those of its processes that are part of the
/// stream since before.
void Ringless::take_attached() {
  for (const auto& [binary, time_ns, after_gap] : probes_.take_attached()) {
    for (const ProcessTable::Ringless& process : context_.processes.ringless(binary)) {
      // The records of the lifecycle may be ahead: nothing was missed of a process that began after the attachment.
      const bool missed_some = process.since_ns < time_ns && (after_gap || has_past(process));
      const std::uint64_t probed_ns = std::max(time_ns, process.since_ns);
      Probed* const probed = find_or_add(process.index, probed_ns,
                                         {.binary = binary,
                                          .user = process.user,
                                          .since_ns = missed_some ? process.since_ns : probed_ns,
                                          .missed_some = missed_some});
      if (probed != nullptr && missed_some) lose_unprobed(*probed, time_ns);
    }
  }
}

void Ringless::on_ring(ProcessIndex process, std::uint64_t time_ns) {
  const auto found = probed_.find(process);
  if (found != probed_.end() && misses_some(found->second)) lose_unprobed(found->second, time_ns);
}

/// A process ended without a ring and without a record of a probe. It may have had no events, or they were missed.
void Ringless::end_unprobed(const ProcessTable::Ringless& process, const End& end, std::vector<std::uint32_t>& slots) {
  // A process that starts another program forks first, and the child runs no OCaml code in between.
  if (process.forked && end.by_exec && end.time_ns < process.since_ns + RinglessProbes::ring_timeout_ns) return;
  const auto probed_since = probes_.attached_since(process.binary);
  if (probed_since && (*probed_since <= process.since_ns || !has_past(process))) return;
  const ProcessInfo& info = context_.registry.process(process.index);
  if (const auto failure = probes_.failure(process.binary)) unprobed_.add(info.pid, info.exe, *failure);
  probes_.attach_for_next(process.binary, process.user);
  Probed missed{.slot = add_slot(process.index), .since_ns = std::max(process.since_ns, context_.start_ns)};
  if (missed.slot == 0) return;
  lose_unprobed(missed, end.time_ns);
  slots.push_back(missed.slot);
}

void Ringless::end_image(ProcessIndex process, const End& end, std::vector<std::uint32_t>& slots) {
  ProcessInfo& info = context_.registry.process(process);
  const auto found = probed_.find(process);
  if (found == probed_.end()) {
    const auto ringless = context_.processes.ringless_process(info.pid);
    if (!ringless || ringless->index != process || info.ring != RingState::none) return;
    end_unprobed(*ringless, end, slots);
    probes_.on_end(ringless->binary, ringless->user, end.time_ns);
    return;
  }
  Probed& probed = found->second;
  if (misses_some(probed) && info.ring == RingState::probed) lose_unprobed(probed, end.time_ns);
  if (info.ring == RingState::probed) probes_.on_end(probed.binary, probed.user, end.time_ns);
  info.words += probed.words;
  info.domains = std::max(info.domains, static_cast<std::uint32_t>(probed.domains.size()));
  slots.push_back(probed.slot);
  probed_.erase(found);
}

void Ringless::finish(std::uint64_t now_ns) {
  place_until(forever);
  std::erase_if(waiting_, [&](const rtev_probed& record) { return place(record); });
  figures_.unplaced += is_filtered_ ? 0 : waiting_.size();
  waiting_.clear();
  std::vector<std::uint32_t> slots;
  const End end{.time_ns = now_ns, .by_exec = false};
  for (const std::uint32_t binary : context_.processes.ringless_binaries()) {
    for (const ProcessTable::Ringless& process : context_.processes.ringless(binary)) {
      if (!probed_.contains(process.index)) end_image(process.index, end, slots);
    }
  }
  while (!probed_.empty()) {
    end_image(probed_.begin()->first, end, slots);
  }
}

std::optional<std::uint64_t> Ringless::waiting_since() const {
  if (waiting_.empty()) return std::nullopt;
  return std::ranges::min(waiting_, {}, &rtev_probed::time_ns).time_ns;
}

Ringless::Figures Ringless::figures() const {
  Figures figures = figures_;
  figures.gaps = probes_.gaps();
  figures.dropped = source_.dropped();
  figures.unplaced += source_.unattributed();
  return figures;
}

}  // namespace rtev
