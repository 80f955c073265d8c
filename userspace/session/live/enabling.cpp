// SPDX-License-Identifier: MIT
#include "session/live/enabling.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace rtev {
namespace {

/// The enabler takes requests again after that, if it was busy.
constexpr std::uint64_t busy_retry_ns = 10'000'000;

/// Also those whose ring is open: whether they have paused their events is known only to the enabler.
bool may_be_enabled(const ProcessInfo& info) {
  return !info.ended && info.runtime == ocaml_runtime &&
         (info.ring == RingState::none || info.ring == RingState::active || info.ring == RingState::paused ||
          info.ring == RingState::probed);
}

/// A program that lacked something which may be there later is asked for again after that, and after twice that at each
/// further time, up to 85 minutes: what others take, as clients take descriptors, they give back. Each time that events
/// come on takes the program a mapping more.
constexpr std::uint64_t lack_retry_ns = 10'000'000'000;
constexpr unsigned max_lack_doublings = 9;
bool may_pass(EnableResult result) {
  return result == EnableResult::limit || result == EnableResult::space || result == EnableResult::memory;
}

/// A program whose events are on needs no report that switching them on failed.
bool is_news(EnableResult result, RingState ring) {
  if (result == EnableResult::nothing_to_do || result == EnableResult::gone) return false;
  return is_good(result) || ring != RingState::active || result == EnableResult::own_pause ||
         result == EnableResult::suspect;
}

}  // namespace

void Enabling::add(ProcessIndex process, const Due& due) {
  if (failure_) return;
  due_.insert_or_assign(process, due);
  asking_.by(due.time_ns);
}

void Enabling::forget(ProcessIndex process) {
  due_.erase(process);
  asked_.erase(process);
  lacked_.erase(process);
  if (const auto lack = lacking_.extract(process))
    left_out_.add(lack.mapped().pid, lack.mapped().exe, lack.mapped().why);
  if (ours_.erase(process) == 0) return;
  for (const auto& [child, due] : due_) {
    if (due.parent == process) ours_.insert(child);
  }
}

void Enabling::take_answers(std::uint64_t now_ns) {
  if (failure_) return;
  auto answers = enabler_.take();
  if (!answers) {
    failure_ = std::move(answers.error());
    due_.clear();
    return;
  }
  for (const enable::EnableAnswer& answer : *answers) {
    asked_.erase(answer.id);
    const ProcessInfo& info = registry_.process(answer.id);
    if (answer.is_ours && !info.ended) ours_.insert(answer.id);
    if (!answer.is_correction && !is_news(answer.result, info.ring)) continue;
    const bool is_told = lacking_.erase(answer.id) > 0;
    if (may_pass(answer.result) && !info.ended) {
      const unsigned times = lacked_[answer.id]++;
      lacking_.insert_or_assign(answer.id, Lack{.pid = answer.pid, .exe = info.exe, .why = answer.why});
      add(answer.id, {.time_ns = now_ns + (lack_retry_ns << std::min(times, max_lack_doublings)), .parent = {}});
      if (!is_told) report_(answer.id, answer.result);
      continue;
    }
    // Whoever came to harm has ended, and the stream may have forgotten it.
    if (!is_good(answer.result)) left_out_.add(answer.pid, info.ended ? answer.comm : info.exe, answer.why);
    if (!info.ended) report_(answer.id, answer.result);
  }
}

void Enabling::ask(std::uint64_t now_ns) {
  for (auto candidate = due_.begin(); candidate != due_.end();) {
    const auto [process, due] = *candidate;
    if (due.time_ns > now_ns) {
      asking_.by(due.time_ns);
      ++candidate;
      continue;
    }
    // By now it is known whether the parent's events came on.
    if (due.parent && ours_.contains(*due.parent)) ours_.insert(process);
    const ProcessInfo& info = registry_.process(process);
    const enable::EnableRequest request{.pid = info.pid,
                                        .start_ticks = info.start_ticks,
                                        .user = info.user,
                                        .id = process,
                                        .is_child_of_enabled = ours_.contains(process)};
    if (may_be_enabled(info) && !enabler_.ask(request)) {
      asking_.at(now_ns + busy_retry_ns);
      return;
    }
    if (may_be_enabled(info)) asked_.insert_or_assign(process, info.pid);
    candidate = due_.erase(candidate);
  }
}

std::string Enabling::failure_text() const {
  LeftOutPrograms left_out = left_out_;
  for (const auto& [process, lack] : lacking_) left_out.add(lack.pid, lack.exe, lack.why);
  std::string text = left_out.text();
  if (asked_.size() == 1)
    text += fmt::format(
        "rtev-bpf: the events of process {} could not be switched on in time: it may have slept, or reached no "
        "safepoint\n",
        asked_.begin()->second);
  else if (asked_.size() > 1)
    text += fmt::format(
        "rtev-bpf: the events of {} programs could not be switched on in time: they may have slept, or reached no "
        "safepoint (one is process {})\n",
        asked_.size(), asked_.begin()->second);
  if (failure_) text += "rtev-bpf: " + failure_->message() + "\nhint: " + failure_->hint + "\n";
  return text;
}

}  // namespace rtev
