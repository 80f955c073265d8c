// SPDX-License-Identifier: MIT
#include "session/live/ringless_probes.hpp"

#include <algorithm>
#include <utility>

namespace rtev {
namespace {

/// Why a binary cannot be probed; empty if it can be.
std::string why_not(const RuntimeBinary& runtime) {
  if (runtime.version.empty()) return "its symbols are stripped, so the functions that write events cannot be found";
  if (runtime.emitters.empty()) return "not all functions that write events can be found in it";
  if (runtime.domain_self_tls == 0 && (runtime.caml_state_tls == 0 || runtime.id_offset == 0))
    return "the variable that holds a thread's domain cannot be found in it";
  return {};
}

kernel::ProbePlan plan_of(const RuntimeBinary& runtime) {
  kernel::ProbePlan plan{.sites = {}, .ringless = {}, .why_not = why_not(runtime)};
  if (!plan.why_not.empty()) return plan;
  plan.ringless.domain_self_tls = runtime.domain_self_tls;
  plan.ringless.caml_state_tls = runtime.id_offset != 0 ? runtime.caml_state_tls : 0;
  plan.ringless.id_offset = runtime.id_offset;
  for (const EmitterPoint& point : runtime.emitters) {
    plan.sites.push_back({.function = static_cast<std::uint8_t>(point.emitter), .file_offset = point.file_offset});
    plan.ringless.enabled[point.emitter] = point.enabled;
    if (runtime.shared_library)
      plan.ringless.tls_module_word[point.emitter] = static_cast<std::int64_t>(runtime.tls_module_word - point.address);
  }
  return plan;
}

}  // namespace

bool RinglessProbes::prepare(int fd, const RuntimeBinary& runtime, kernel::ProbedBinary binary) {
  return probes_.add(fd, std::move(binary), plan_of(runtime));
}

void RinglessProbes::attach(std::uint32_t binary) {
  if (probes_.request(binary)) run_later_([this, binary] { return probes_.attach(binary); });
}

void RinglessProbes::request(std::uint64_t now_ns) {
  attach_candidates(now_ns);
  for (const auto& [binary, too_fast] : std::exchange(too_fast_, {})) {
    if (!is_in_gap(binary) && others_run(binary, too_fast.user, now_ns))
      gap_count_ += too_fast.processes;
    else
      detach_for_a_while(binary, too_fast.user, now_ns);
  }
  for (auto& [binary, gap] : gaps_) {
    if (now_ns < gap.attach_again_ns) requesting_.by(gap.attach_again_ns);
    if (now_ns < gap.attach_again_ns || std::exchange(gap.requested, true)) continue;
    // Requested in the background, too: detaching may not be done yet.
    run_later_([this, id = binary] {
      probes_.request(id);
      return probes_.attach(id);
    });
  }
}

/// A gap ends early for a process of another user.
void RinglessProbes::attach_for_next(std::uint32_t binary, std::uint32_t user) {
  requesting_.at_once();
  const auto gap = gaps_.find(binary);
  if (gap == gaps_.end())
    wanted_.insert(binary);
  else if (gap->second.user != user)
    gap->second.attach_again_ns = 0;
}

void RinglessProbes::attach_candidates(std::uint64_t now_ns) {
  for (const std::uint32_t binary : std::exchange(wanted_, {})) attach(binary);
  std::erase_if(candidates_, [&](std::uint32_t binary) {
    auto processes = processes_.ringless(binary);
    const auto gap = gaps_.find(binary);
    if (gap != gaps_.end())
      std::erase_if(processes, [&](const auto& process) { return process.user == gap->second.user; });
    const auto may_get_ring = [&](const ProcessTable::Ringless& process) {
      return process.began_then && now_ns < process.since_ns + ring_timeout_ns;
    };
    if (std::ranges::all_of(processes, may_get_ring)) {
      for (const auto& process : processes) requesting_.by(process.since_ns + ring_timeout_ns);
      return processes.empty();
    }
    if (gap != gaps_.end())
      gap->second.attach_again_ns = 0;
    else
      attach(binary);
    return true;
  });
}

void RinglessProbes::on_end(std::uint32_t binary, std::uint32_t user, std::uint64_t time_ns) {
  auto& [last, other] = ended_[binary];
  if (last.user != user) other = last;
  last = {.user = user, .time_ns = time_ns};
}

/// True if users other than this one run the binary, or did so lately.
bool RinglessProbes::others_run(std::uint32_t binary, std::uint32_t user, std::uint64_t now_ns) const {
  if (std::ranges::any_of(processes_.ringless(binary), [&](const auto& process) { return process.user != user; }))
    return true;
  const auto ended = ended_.find(binary);
  return ended != ended_.end() && std::ranges::any_of(ended->second, [&](const Ended& last) {
           return last.user != user && now_ns < last.time_ns + user_timeout_ns;
         });
}

void RinglessProbes::detach_for_a_while(std::uint32_t binary, std::uint32_t user, std::uint64_t now_ns) {
  if (const auto gap = gaps_.find(binary); gap != gaps_.end()) {
    gap->second.again |= gap->second.requested;
    return;
  }
  Backoff& backoff = backoffs_[binary];
  const bool is_reset = now_ns < backoff.attached_since_ns ||
                        now_ns - backoff.attached_since_ns > RTEV_RINGLESS_PAUSE_RESET * backoff.pause_ns;
  backoff.pause_ns =
      is_reset ? RTEV_RINGLESS_MIN_PAUSE_NS : std::min<std::uint64_t>(2 * backoff.pause_ns, RTEV_RINGLESS_MAX_PAUSE_NS);
  gaps_[binary] = {.user = user, .attach_again_ns = now_ns + backoff.pause_ns};
  ++gap_count_;
  run_later_([this, binary] {
    probes_.detach(binary);
    return true;
  });
}

std::vector<RinglessProbes::Attached> RinglessProbes::take_attached() {
  std::vector<Attached> attached;
  for (const auto& [binary, is_attached, time_ns] : probes_.take_changes()) {
    const bool after_gap = std::exchange(backoffs_[binary].attached_since_ns, is_attached ? time_ns : never) == never;
    if (!is_attached) continue;
    // Probes that were still being attached when a gap began are detached again, as was requested then.
    const auto gap = gaps_.find(binary);
    if (gap != gaps_.end() && gap->second.requested) {
      // BPF reports it only once.
      if (gap->second.again) exceeded_limit(binary, gap->second.user);
      gaps_.erase(gap);
    }
    attached.push_back({.binary = binary, .time_ns = time_ns, .after_gap = after_gap});
  }
  return attached;
}

bool RinglessProbes::reports_all(std::uint32_t binary, std::uint64_t time_ns) const {
  const auto known = backoffs_.find(binary);
  return known != backoffs_.end() && known->second.attached_since_ns <= time_ns && !is_in_gap(binary);
}

bool RinglessProbes::is_attached(std::uint32_t binary) const {
  const auto known = backoffs_.find(binary);
  return known != backoffs_.end() && known->second.attached_since_ns != never;
}

void RinglessProbes::detach_unused(std::uint64_t now_ns) {
  std::erase_if(ended_, [&](const auto& ended) { return ended.second[0].time_ns + user_timeout_ns < now_ns; });
  run_later_([this, now_ns, in_use = processes_.ringless_binaries()] {
    probes_.detach_unused(in_use, now_ns);
    return true;
  });
}

}  // namespace rtev
