// SPDX-License-Identifier: MIT
#include "session/ringless.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace rtev {
namespace {

constexpr auto forever = std::numeric_limits<std::uint64_t>::max();

/// How long events may wait for their process to come into view: its program is being inspected, or it is not traced.
constexpr std::uint64_t placing_timeout_ns = 500'000'000;

/// A program that has a ring from its start on creates it within some milliseconds. It is not probed: the probes would
/// see that it has a ring and report nothing, but cost all the same.
constexpr std::uint64_t ring_timeout_ns = 20'000'000;

/// Probes stay detached for so long after a program was too fast, then twice as long each time it is again.
constexpr std::uint64_t min_pause_ns = 1'000'000'000, max_pause_ns = 32'000'000'000;

/// After this many times its last pause without being too fast, a program begins with the shortest pause again.
constexpr std::uint64_t backoff_reset = 4;

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

/// Why a binary cannot be probed; empty if it can be.
std::string why_not(const RuntimeBinary& runtime) {
  if (runtime.version.empty()) return "its symbols are stripped, so the functions that write events cannot be found";
  if (runtime.emitters.empty()) return "not all functions that write events can be found in it";
  if (runtime.domain_self_tls == 0 && (runtime.caml_state_tls == 0 || runtime.id_offset == 0))
    return "the variable that holds a thread's domain cannot be found in it";
  return {};
}

kernel::ProbePlan plan_of(const RuntimeBinary& runtime) {
  kernel::ProbePlan plan{.sites = {},
                         .ringless = {.domain_self_tls = runtime.domain_self_tls,
                                      .caml_state_tls = runtime.id_offset != 0 ? runtime.caml_state_tls : 0,
                                      .enabled = {},
                                      .tls_module_word = {},
                                      .id_offset = runtime.id_offset,
                                      .round = 0},
                         .why_not = why_not(runtime)};
  if (!plan.why_not.empty()) return plan;
  for (const EmitterPoint& point : runtime.emitters) {
    plan.sites.push_back({.function = static_cast<std::uint8_t>(point.emitter), .file_offset = point.file_offset});
    plan.ringless.enabled[point.emitter] = point.enabled;
    if (runtime.shared_library)
      plan.ringless.tls_module_word[point.emitter] = static_cast<std::int64_t>(runtime.tls_module_word - point.address);
  }
  return plan;
}

}  // namespace

Ringless::Ringless(kernel::RinglessPrograms programs, Context context, const ProcessFilter& filter)
    : programs_(std::move(programs)),
      probes_(programs_, kernel::AttachPolicy::on_request),
      context_(std::move(context)),
      pids_(filter.pids),
      is_filtered_(!filter.pids.empty() || !filter.name_globs.empty()) {}

Ringless::~Ringless() = default;

void Ringless::prepare(int fd, const Binary& binary) {
  probes_.add(fd, binary.id, plan_of(binary.runtime));
}

/// Probes a binary once one of its processes is old enough to have a ring, and has none.
void Ringless::consider(std::uint64_t now_ns) {
  considered_ns_ = now_ns;
  const auto attach = [&](std::uint32_t binary_id) {
    if (probes_.request(binary_id)) context_.run_later([this, binary_id] { probes_.attach(binary_id); });
  };
  for (const std::uint32_t binary_id : std::exchange(ended_unprobed_, {})) {
    if (!gaps_.contains(binary_id)) attach(binary_id);
  }
  std::erase_if(candidates_, [&](std::uint32_t binary_id) {
    if (gaps_.contains(binary_id)) return true;
    bool undecided = false;
    for (const ProcessTable::Ringless& process : context_.processes.ringless(binary_id)) {
      if (process.began_then && now_ns < process.since_ns + ring_timeout_ns) {
        undecided = true;
        continue;
      }
      attach(binary_id);
      return true;
    }
    return !undecided;
  });
}

void Ringless::drain() {
  records_.erase(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(placed_));
  placed_ = 0;
  const std::size_t before = records_.size();
  programs_.read([this](const rtev_probed& record) { records_.push_back(record); });
  active_ = records_.size() > before;
  std::ranges::sort(records_, {}, &rtev_probed::time_ns);
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
  // The process was found by the scan, and the record of its exec may still be on its way.
  if (record.time_ns < image->since_ns && image->since_ns >= records_taken_until_ns_) return false;
  const bool is_all = sees_all(record.binary, record.time_ns);
  const bool missed_some = !is_all && image->began_ns > context_.start_ns;
  Probed* const probed = find_or_add(image->index, {.binary = record.binary,
                                                    .time_ns = record.time_ns,
                                                    .since_ns = missed_some ? image->began_ns : record.time_ns,
                                                    .missed_some = missed_some});
  if (probed == nullptr) {
    ++figures_.unplaced;
    return true;
  }
  if (record.lost_words > 0) lose(*probed, record.domain, record.time_ns, LossReason::overflow, record.lost_words);
  if (record.type == RTEV_PROBED_END) return true;
  if (record.type == RTEV_PROBED_LIMITED) too_fast_.insert(record.binary);
  const EventKind kind = kind_of(record.emitter);
  const std::uint64_t words = kind == EventKind::begin || kind == EventKind::end ? short_words : long_words;
  context_.timeline.push({.time = record.time_ns,
                          .value = record.value,
                          .source = Source{probed->slot, record.domain}.pack(),
                          .id = record.id,
                          .kind = kind,
                          .flags = 0},
                         {});
  probed->words += {.written = words, .delivered = words, .events = 1};
  std::uint64_t& last = probed->last_ns.try_emplace(record.domain, probed->since_ns).first->second;
  if (is_all) last = std::max<std::uint64_t>(last, record.time_ns);
  return true;
}

/// False while probes are attached or detached one by one: those that are attached report some of the events.
bool Ringless::sees_all(std::uint32_t binary, std::uint64_t time_ns) const {
  const auto known = backoffs_.find(binary);
  return known != backoffs_.end() && known->second.attached_since_ns <= time_ns && !gaps_.contains(binary);
}

/// True if events may have been missed, because not all probes were attached, that no loss reports so far.
bool Ringless::misses_some(const Probed& probed) const {
  const auto known = backoffs_.find(probed.binary);
  const bool are_on = known != backoffs_.end() && known->second.attached_since_ns != forever;
  return gaps_.contains(probed.binary) || (probed.missed_some && !are_on);
}

/// 0 if all slots are taken.
std::uint32_t Ringless::add_slot(ProcessIndex process) {
  return context_.registry.add_ring(
      {.process = process, .domains = RTEV_MAX_DOMAINS, .producer = {}, .user_event_name = {}});
}

/// Null if all slots are taken.
Ringless::Probed* Ringless::find_or_add(ProcessIndex process, const FirstSeen& first) {
  const auto known = probed_.find(process);
  if (known != probed_.end()) return &known->second;
  const std::uint32_t slot = add_slot(process);
  if (slot == 0) return nullptr;
  Probed& probed = probed_[process];
  probed.slot = slot;
  probed.binary = first.binary;
  probed.since_ns = first.since_ns;
  probed.missed_some = first.missed_some;
  RingState& state = context_.registry.process(process).ring;
  if (state == RingState::none) state = RingState::probed;
  context_.events.on_process(first.time_ns, ProcessAction::probe, {.process = process, .peer = 0, .detail = 0});
  return &probed;
}

void Ringless::lose(Probed& probed, std::uint16_t domain, std::uint64_t time_ns, LossReason reason,
                    std::uint64_t words) {
  const auto last = probed.last_ns.find(domain);
  const std::uint64_t from_ns = last != probed.last_ns.end() ? last->second : probed.since_ns;
  const Loss loss{.words = words, .from_ns = std::min(from_ns, time_ns), .to_ns = time_ns};
  context_.timeline.push({.time = time_ns,
                          .value = 0,
                          .source = Source{probed.slot, domain}.pack(),
                          .id = static_cast<std::uint16_t>(reason),
                          .kind = EventKind::lost,
                          .flags = 0},
                         std::as_bytes(std::span(&loss, 1)));
  probed.words += {.written = words, .lost = words};
}

/// Reports that events of any domain may be missing. Domain 0 stands for those without events so far.
void Ringless::lose_unprobed(Probed& probed, std::uint64_t time_ns) {
  if (probed.last_ns.empty()) lose(probed, 0, time_ns, LossReason::unprobed, 0);
  for (auto& [domain, last_ns] : probed.last_ns) {
    lose(probed, domain, time_ns, LossReason::unprobed, 0);
    last_ns = std::max(last_ns, time_ns);
  }
  probed.since_ns = time_ns;
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
  records_taken_until_ns_ = std::max(times.records_taken_until_ns, now_ns - placing_timeout_ns);
  take_changes();
  // Later events may belong to an image whose exec record has not been taken yet.
  place_until(records_taken_until_ns_);
  std::erase_if(waiting_, [&](const rtev_probed& record) {
    if (place(record)) return true;
    const auto pid = static_cast<std::int32_t>(record.tgid);
    const bool expired = now_ns > record.time_ns + placing_timeout_ns;
    if (is_wanted(pid) && !expired) return false;
    const auto image = context_.processes.current_image(pid);
    const bool is_untraced = !image || record.time_ns < image->began_ns;
    if (is_filtered_ && is_untraced)
      programs_.ignore(pid, record.time_ns);
    else
      ++figures_.unplaced;
    return true;
  });
  consider(now_ns);
  for (const std::uint32_t binary : std::exchange(too_fast_, {})) detach_for_a_while(binary, now_ns);
  for (auto& [binary_id, gap] : gaps_) {
    if (now_ns < gap.attach_again_ns || std::exchange(gap.requested, true)) continue;
    probes_.request(binary_id);
    context_.run_later([this, id = binary_id] { probes_.attach(id); });
  }
}

/// A probe that is over the limit reports nothing, and costs the program as much as one that does.
void Ringless::detach_for_a_while(std::uint32_t binary_id, std::uint64_t now_ns) {
  if (const auto gap = gaps_.find(binary_id); gap != gaps_.end()) {
    gap->second.again |= gap->second.requested;
    return;
  }
  Backoff& backoff = backoffs_[binary_id];
  const bool is_reset =
      now_ns < backoff.attached_since_ns || now_ns - backoff.attached_since_ns > backoff_reset * backoff.pause_ns;
  backoff.pause_ns = is_reset ? min_pause_ns : std::min(2 * backoff.pause_ns, max_pause_ns);
  gaps_[binary_id] = {.attach_again_ns = now_ns + backoff.pause_ns};
  ++figures_.gaps;
  context_.run_later([this, binary_id] { probes_.detach(binary_id); });
}

void Ringless::take_changes() {
  for (const kernel::UprobeManager::Change& change : probes_.take_changes()) {
    if (!change.attached) {
      backoffs_[change.binary].attached_since_ns = forever;
      continue;
    }
    // Probes that were still being attached when a gap began are detached again, as was requested then.
    const auto gap = gaps_.find(change.binary);
    const bool is_return = gap != gaps_.end() && gap->second.requested;
    if (is_return) {
      // BPF reports it only once.
      if (gap->second.again) too_fast_.insert(change.binary);
      gaps_.erase(gap);
    }
    backoffs_[change.binary].attached_since_ns = change.time_ns;
    for (const ProcessTable::Ringless& process : context_.processes.ringless(change.binary)) {
      const bool missed_some = is_return || has_past(process);
      Probed* const probed = find_or_add(process.index, {.binary = change.binary,
                                                         .time_ns = change.time_ns,
                                                         .since_ns = missed_some ? process.since_ns : change.time_ns,
                                                         .missed_some = missed_some});
      if (probed == nullptr || !missed_some) continue;
      lose_unprobed(*probed, change.time_ns);
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
  if (process.forked && end.by_exec && end.time_ns < process.since_ns + ring_timeout_ns) return;
  const auto probed_since = probes_.attached_since(process.binary);
  if (probed_since && (*probed_since <= process.since_ns || !has_past(process))) return;
  const ProcessInfo& info = context_.registry.process(process.index);
  if (const auto failure = probes_.failure(process.binary)) unprobed_.add(info.pid, info.exe, *failure);
  ended_unprobed_.insert(process.binary);
  Probed missed{.since_ns = std::max(process.since_ns, context_.start_ns)};
  missed.slot = add_slot(process.index);
  if (missed.slot == 0) return;
  lose_unprobed(missed, end.time_ns);
  slots.push_back(missed.slot);
}

void Ringless::end_image(ProcessIndex process, const End& end, std::vector<std::uint32_t>& slots) {
  ProcessInfo& info = context_.registry.process(process);
  const auto found = probed_.find(process);
  if (found == probed_.end()) {
    const auto ringless = context_.processes.ringless_process(info.pid);
    if (ringless && ringless->index == process && info.ring == RingState::none) end_unprobed(*ringless, end, slots);
    return;
  }
  Probed& probed = found->second;
  if (misses_some(probed) && info.ring == RingState::probed) lose_unprobed(probed, end.time_ns);
  info.words += probed.words;
  info.domains = std::max(info.domains, static_cast<std::uint32_t>(probed.last_ns.size()));
  slots.push_back(probed.slot);
  probed_.erase(found);
}

void Ringless::finish(std::uint64_t now_ns) {
  records_taken_until_ns_ = forever;
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

void Ringless::detach_unused(std::uint64_t now_ns) {
  context_.run_later(
      [this, now_ns, in_use = context_.processes.ringless_binaries()] { probes_.detach_unused(in_use, now_ns); });
}

std::optional<std::uint64_t> Ringless::waiting_since() const {
  if (waiting_.empty()) return std::nullopt;
  return std::ranges::min(waiting_, {}, &rtev_probed::time_ns).time_ns;
}

std::optional<std::uint64_t> Ringless::next_tick_ns() const {
  std::optional<std::uint64_t> next;
  for (const auto& [binary, gap] : gaps_) {
    if (!gap.requested) next = std::min(next.value_or(forever), gap.attach_again_ns);
  }
  if (!candidates_.empty()) next = std::min(next.value_or(forever), considered_ns_ + ring_timeout_ns);
  if (const auto waiting = waiting_since()) next = std::min(next.value_or(forever), *waiting + placing_timeout_ns);
  return next;
}

Ringless::Figures Ringless::figures() const {
  Figures figures = figures_;
  figures.dropped = programs_.dropped();
  figures.unplaced += programs_.unattributed();
  return figures;
}

}  // namespace rtev
