// SPDX-License-Identifier: MIT
#include "analysis/pauses/pauses_sink.hpp"

#include <algorithm>
#include <utility>

#include "analysis/missing_events.hpp"

namespace rtev {

Pauses::Pauses(PausesOptions options)
    : options_(std::move(options)),
      analyzer_(*this, options_.max_bytes),
      worst_(std::min(options_.top, PausesOptions::max_top)) {}

Pauses::~Pauses() = default;

void Pauses::header(const RunHeader& header) {
  header_ = header;
  analyzer_.header(header);
  own_.header(header);
  last_ns_ = header.begin_ns();
}

void Pauses::consume(const Batch& batch, const Registry& registry) {
  registry_ = &registry;
  stacks_ = &registry.stacks();
  for (const Event& event : batch.events()) {
    analyzer_.add(event, batch, registry);
    dropped_.add(event, batch);
    own_.add(event, batch);
    read_programs_.add(event, batch, registry);
    last_ns_ = std::max(last_ns_, event.time);
  }
  registry_ = nullptr;
}

void Pauses::summary(const RunSummary& summary, const Registry& registry) {
  last_ns_ = std::max(last_ns_, summary.end_ns);
  registry_ = &registry;
  analyzer_.finish(last_ns_);
  registry_ = nullptr;
  read_ = read_programs_.programs(registry);
  header_.not_recorded.note(summary.events);
  dropped_.add(summary);
  own_.summary(summary);
  truncated_ = !summary.complete;
  lacks_ = lacks_of(with_scheduler_gaps(summary, scheduler_gaps()), registry);
  counts_.rings_missed = summary.rings_missed;
  counts_.words_before = words_overwritten_before(summary, registry);
}

PausesReport Pauses::report() {
  PausesReport report{.version = header_.version,
                      .run_ns = header_.start_ns,
                      .run_realtime_ns = header_.start_realtime_ns,
                      .start_ns = header_.begin_ns(),
                      .end_ns = last_ns_,
                      .truncated = truncated_,
                      .not_recorded = header_.not_recorded,
                      .min_ns = options_.min_ns,
                      .top = options_.top,
                      .full = options_.full,
                      .longest_only = options_.longest_only,
                      .stacks = stacks_,
                      .input = options_.input,
                      .counts = counts_,
                      .lacks = lacks_,
                      .own = own_.figures(),
                      .several_processes = processes_.size() == several,
                      .read_programs = read_,
                      .long_pauses = groups_.longest(options_.min_ns),
                      .worst = worst_.worst(),
                      .unfinished = unfinished_};
  if (!header_.not_recorded.lacks_pauses()) report.utilization = utilization_.windows();
  report.counts.represented = worst_.represented(options_.min_ns);
  report.counts.ends_without_begin = analyzer_.finder().ends_without_begin();
  report.counts.ignored_events = analyzer_.finder().ignored();
  report.counts.scheduler_dropped = dropped_.count();
  report.counts.scheduler_contradictions = analyzer_.threads().inconsistent_switches();
  report.counts.scheduler_seen = analyzer_.scheduler_seen();
  report.counts.all_switches_seen = analyzer_.threads().sees_all();
  return report;
}

void Pauses::on_pause_details(PauseDetails&& pause) {
  ++counts_.pauses;
  utilization_.add_pause(pause.domain, pause.begin_ns, pause.end_ns);
  if (pause.duration_ns() < options_.min_ns || options_.top == 0) return;
  ++counts_.long_enough;
  counts_.total_ns += pause.duration_ns();
  counts_.unknown_ns += pause.time.unknown;
  if (processes_.size() < several) processes_.insert(pause.domain.process);
  pause.comm = registry_->process(pause.domain.process).name;
  groups_.add(pause);
  if (options_.on_pause) options_.on_pause(pause);
  if (worst_.wants(pause.duration_ns())) worst_.add(std::move(pause));
}

void Pauses::on_unfinished(const DomainLife& domain, const PhaseEnd& root, Unfinished reason) {
  ++counts_.unfinished[static_cast<std::size_t>(reason)];
  utilization_.lose(domain, root.begin_ns);
  const auto length = [](const UnfinishedPause& pause) { return pause.until_ns - pause.begin_ns; };
  UnfinishedPause pause{
      .domain = domain, .root = root.phase, .begin_ns = root.begin_ns, .until_ns = root.end_ns, .reason = reason};
  if (reason == Unfinished::clock || length(pause) < options_.min_ns) return;
  const auto place =
      std::ranges::find_if(unfinished_, [&](const UnfinishedPause& other) { return length(other) < length(pause); });
  if (place == unfinished_.end() && unfinished_.size() >= options_.top) return;
  pause.comm = registry_->process(domain.process).name;
  unfinished_.insert(place, std::move(pause));
  if (unfinished_.size() > options_.top) unfinished_.pop_back();
}

void Pauses::on_words_lost(const DomainLife& domain, const Loss& loss) {
  utilization_.lose(domain, loss.from_ns);
  counts_.lost_words += loss.words;
  counts_.unprobed += loss.words == 0;
  worst_.lose(domain, loss);
  groups_.lose(domain, loss);
}

}  // namespace rtev
