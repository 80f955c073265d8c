// SPDX-License-Identifier: MIT
#include "stream/filter.hpp"

#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/name_globs.hpp"
#include "rtev/names.hpp"

namespace rtev {
namespace {

/// Names in the cache of verdicts before it is cleared: programs choose the names.
constexpr std::size_t max_verdicts = 1 << 16;

bool has_wildcard(std::string_view word) {
  return word.find_first_of("*?[\\") != std::string_view::npos;
}

}  // namespace

Result<EventFilter> EventFilter::parse(std::string_view list) {
  EventFilter filter;
  filter.list_ = list;
  filter.kinds_[static_cast<std::size_t>(EventKind::lost)] = true;
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view word = list.substr(0, comma);
    const auto kind = std::ranges::find(kind_words(), word, &KindWord::word);
    if (kind != kind_words().end()) {
      for (const EventKind one : kind->kinds) filter.kinds_[static_cast<std::size_t>(one)] = true;
      filter.kind_words_.emplace_back(word);
    } else if (!word.empty()) {
      filter.names_.emplace_back(word);
      if (has_wildcard(word)) filter.patterns_.push_back(filter.names_.size() - 1);
    } else {
      return std::unexpected(Error{
          .what = "an empty word in a list of events",
          .hint = "kinds are phase, counter, alloc, lifecycle, user, process, switch, wakeup, sample; other words are "
                  "names, e.g. --events 'user,minor*'"});
    }
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  filter.unmatched_ = filter.names_.size();
  filter.matched_.resize(filter.unmatched_);
  return filter;
}

void EventFilter::add_to(NotRecorded& not_recorded) const {
  not_recorded.selection += fmt::format("{}--events {}", not_recorded.selection.empty() ? "" : " ", list_);
  for (std::size_t kind = 0; kind < event_kind_count; ++kind)
    if (!kinds_[kind]) not_recorded.kinds.set(kind);
  if (kinds_[static_cast<std::size_t>(EventKind::begin)]) return;
  for (const Family family : {Family::before_5_3, Family::since_5_3}) {
    NotRecorded::Phases& missing = not_recorded.phases.at(static_cast<std::size_t>(family));
    for (std::uint16_t id = 0; id < missing.size(); ++id) {
      const std::string name(phase_name(family, id));
      if (!name.empty() && !matches(name)) missing.set(id);
    }
  }
}

bool EventFilter::matches(const std::string& name) const {
  return std::ranges::any_of(names_, [&](const std::string& word) {
    return word == name || (has_wildcard(word) && ::fnmatch(word.c_str(), name.c_str(), 0) == 0);
  });
}

const std::vector<std::string>& EventFilter::all_kinds() {
  static const auto kinds = [] {
    std::vector<std::string> words;
    for (const KindWord& kind : kind_words()) words.emplace_back(kind.word);
    return words;
  }();
  return kinds;
}

std::vector<std::string> EventFilter::unmatched() const {
  std::vector<std::string> words = has_accepted_ ? std::vector<std::string>() : kind_words_;
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (!matched_[i]) words.push_back(names_[i]);
  return words;
}

bool EventFilter::accepts(const Event& event, const Registry& registry) {
  const bool is_kind = kinds_[static_cast<std::size_t>(event.kind)];
  has_seen_any_ = true;
  bool accepted = is_kind;
  // A name is matched also where events of its kind are accepted anyway.
  const bool needs_name = is_kind ? unmatched_ != 0 : !names_.empty() || !has_accepted_;
  if (event.kind < EventKind::lost && needs_name) {
    const std::string_view name = known_name_of(event, registry);
    if (!names_.empty() && accepts_name(name)) accepted = true;
    if (!accepted && (unmatched_ != 0 || !has_accepted_)) remember(event.kind, name);
  }
  has_accepted_ |= accepted && event.kind != EventKind::lost;
  return accepted;
}

bool EventFilter::accepts_name(std::string_view name) {
  const auto mark = [this](std::size_t index) {
    if (!matched_[index]) --unmatched_;
    matched_[index] = true;
  };
  if (const auto exact = std::ranges::find(names_, name); exact != names_.end()) {
    mark(static_cast<std::size_t>(exact - names_.begin()));
    return true;
  }
  if (patterns_.empty()) return false;
  if (const auto known = verdicts_.find(name); known != verdicts_.end()) return known->second;
  if (verdicts_.size() >= max_verdicts) verdicts_.clear();
  const std::string text(name);
  bool verdict = false;
  for (const std::size_t index : patterns_) {
    if (::fnmatch(names_[index].c_str(), text.c_str(), 0) != 0) continue;
    mark(index);
    verdict = true;
  }
  return verdicts_.emplace(text, verdict).first->second;
}

void EventFilter::remember(EventKind kind, std::string_view name) {
  if (name.empty() || remembered_.size() >= max_others || remembered_.contains(name)) return;
  const auto word = std::ranges::find_if(
      kind_words(), [kind](const KindWord& each) { return std::ranges::find(each.kinds, kind) != each.kinds.end(); });
  if (word == kind_words().end()) return;
  remembered_.emplace(name);
  others_[word->word].emplace(name);
}

void PartialSink::hand_on(std::span<const std::byte> payloads, const Registry& registry) {
  for (const Event& event : accepted_) {
    ++events_[static_cast<std::size_t>(event.kind)];
    if ((event.flags & flag_late) != 0) ++late_;
  }
  if (!accepted_.empty()) sink_.consume(Batch(accepted_, payloads), registry);
}

RunSummary PartialSink::counted(RunSummary summary) const {
  summary.events = events_;
  summary.late = late_;
  return summary;
}

void FilterSink::header(const RunHeader& header) {
  RunHeader partial = header;
  filter_.add_to(partial.not_recorded);
  sink_.header(partial);
}

void FilterSink::consume(const Batch& batch, const Registry& registry) {
  accepted_.clear();
  for (const Event& event : batch.events()) {
    if (filter_.accepts(event, registry)) accepted_.push_back(event);
  }
  hand_on(batch.payloads(), registry);
}

void FilterSink::summary(const RunSummary& summary, const Registry& registry) {
  sink_.summary(counted(summary), registry);
}

void Selection::header(const RunHeader& header) {
  bounds_ = options_.window.in(header);
  not_recorded_ = header.not_recorded;
  run_ = {.start_ns = header.start_ns, .end_ns = header.start_ns, .start_realtime_ns = header.start_realtime_ns};
  RunHeader selected = header;
  if (bounds_.begin_ns > header.start_ns) selected.shown_from_ns = bounds_.begin_ns;
  header_ = std::move(selected);
  if (all_processes()) begin();
}

void Selection::begin() {
  if (header_) sink_.header(*header_);
  header_.reset();
}

void Selection::consume(const Batch& batch, const Registry& registry) {
  accepted_.clear();
  payloads_.clear();
  for (const Event& event : batch.events()) {
    if (!is_in_window(event) || !accepts(event, batch, registry)) continue;
    accepted_.push_back(event);
    if (event.kind == EventKind::sched_switch) untrack_others(event, batch);
  }
  // Without a process there is no report: nothing is handed on before it is there.
  if (is_empty()) return;
  if (!accepted_.empty()) begin();
  hand_on(payloads_.empty() ? batch.payloads() : std::span<const std::byte>(payloads_), registry);
}

bool Selection::is_in_window(const Event& event) const {
  if (event.time > bounds_.end_ns) return false;
  return event.time >= bounds_.begin_ns || (options_.for_analysis && event.kind == EventKind::process);
}

/// Not all switches of an unselected thread are handed on, so it must not count as tracked.
void Selection::untrack_others(const Event& event, const Batch& batch) {
  if (all_processes() || options_.for_analysis || sees_all_) return;
  auto change = batch.payload_as<SchedSwitch>(event);
  bool changed = false;
  for (Thread* const thread : {&change->prev, &change->next}) {
    if (!thread->tracked || selected_.contains(thread->pid)) continue;
    thread->tracked = false;
    changed = true;
  }
  if (!changed) return;
  if (payloads_.empty()) payloads_.assign(batch.payloads().begin(), batch.payloads().end());
  std::memcpy(payloads_.data() + (event.value >> 32), &*change, sizeof *change);
}

bool Selection::accepts(const Event& event, const Batch& batch, const Registry& registry) {
  if (all_processes()) return true;
  switch (event.kind) {
    case EventKind::process: {
      const auto record = batch.payload_as<ProcessRecord>(event);
      if (!record) return false;
      const ProcessInfo& info = registry.process(record->process);
      note(info);  // its name may be another one now
      return accepts(info);
    }
    case EventKind::sched_switch: {
      const auto change = batch.payload_as<SchedSwitch>(event);
      return change && accepts(*change);
    }
    case EventKind::wakeup: {
      const auto wakeup = batch.payload_as<Wakeup>(event);
      return wakeup && (options_.for_analysis || sees_all_ || selected_.contains(wakeup->woken.pid));
    }
    case EventKind::sample: {
      const auto sample = batch.payload_as<Sample>(event);
      return sample && selected_.contains(sample->pid);
    }
    default: {
      // The events that the kernel dropped can be of any thread.
      if (event.kind == EventKind::lost && Source::unpack(event.source).slot == 0) return true;
      const ProcessInfo* const info = registry.process_of(event);
      return info != nullptr && accepts(*info);
    }
  }
}

bool Selection::accepts(const ProcessInfo& info) {
  const bool selected = (options_.pids.empty() || std::ranges::find(options_.pids, info.pid) != options_.pids.end()) &&
                        selects_name(options_.name_globs, info.names());
  if (!noted_.contains(info.pid)) note(info);
  // A pid can be reused by another program.
  if (selected)
    selected_.insert(info.pid);
  else
    selected_.erase(info.pid);
  has_selected_ |= selected;
  return selected;
}

void Selection::note(const ProcessInfo& info) {
  noted_.insert(info.pid);
  for (const std::int32_t pid : options_.pids)
    if (pid == info.pid) matched_pids_.insert(pid);
  for (const std::string& glob : options_.name_globs)
    if (matches_name(glob, info.names())) matched_globs_.insert(glob);
  if (processes_.size() < max_processes) processes_.emplace(info.name, info.pid);
}

std::vector<std::int32_t> Selection::unmatched_pids() const {
  std::vector<std::int32_t> pids;
  for (const std::int32_t pid : options_.pids)
    if (!matched_pids_.contains(pid)) pids.push_back(pid);
  return pids;
}

std::vector<std::string> Selection::unmatched_globs() const {
  std::vector<std::string> globs;
  for (const std::string& glob : options_.name_globs)
    if (!matched_globs_.contains(glob)) globs.push_back(glob);
  return globs;
}

bool Selection::accepts(const SchedSwitch& change) {
  sees_all_ = sees_all_ || (!change.prev.tracked && !change.next.tracked);
  return options_.for_analysis || sees_all_ || selected_.contains(change.prev.pid) ||
         selected_.contains(change.next.pid);
}

void Selection::summary(const RunSummary& summary, const Registry& registry) {
  not_recorded_.note(summary.events);
  RunSummary selected = all_processes() && options_.window.is_whole() ? summary : counted(summary);
  if (!options_.window.is_whole()) selected.own_cpu_ns = 0;  // of the whole run: unknown
  run_.end_ns = summary.end_ns;
  if (bounds_.begin_ns > run_.end_ns || bounds_.end_ns < run_.start_ns) {
    missed_run_ = run_;
    if (options_.for_analysis) return;
  }
  if (is_empty() && !missed_run_) return;
  selected.start_ns = std::max(selected.start_ns, bounds_.begin_ns);
  selected.end_ns = std::min(selected.end_ns, bounds_.end_ns);
  begin();
  sink_.summary(selected, registry);
}

}  // namespace rtev
