// SPDX-License-Identifier: MIT
#include "analysis/html_report/html_report_sink.hpp"

#include <algorithm>
#include <utility>

namespace rtev {
namespace {

/// What a sample that differs from all others takes, with its part of the tree.
constexpr std::size_t bytes_per_key = 256;

Profile profile_of(SampleKind kind, const HtmlReportOptions& options) {
  return Profile({.kind = kind, .input = options.input, .max_keys = options.max_bytes / 16 / bytes_per_key});
}

}  // namespace

HtmlReportSink::HtmlReportSink(const HtmlReportOptions& options)
    : input_(options.input),
      timelines_(options.max_bytes / 4),
      stats_({.max_bytes = options.max_bytes / 16}),
      latency_({.max_bytes = options.max_bytes / 4}, discarded_),
      pauses_({.input = options.input,
               .max_bytes = options.max_bytes / 16,
               .on_pause =
                   [this](const PauseDetails& pause) {
                     series_.add(pause);
                     timelines_.add(pause);
                   }}),
      spans_({.pattern = "*", .input = options.input}),
      stalls_({.input = options.input}),
      tasks_({.input = options.input}),
      on_cpu_(profile_of(SampleKind::on_cpu, options)),
      off_cpu_(profile_of(SampleKind::off_cpu, options)),
      allocations_(profile_of(SampleKind::allocation, options)) {}

void HtmlReportSink::header(const RunHeader& header) {
  header_ = header;
  last_ns_ = header.begin_ns();
  series_.begin(header.begin_ns());
  for (Sink* const part : parts()) part->header(header);
}

void HtmlReportSink::consume(const Batch& batch, const Registry& registry) {
  // The pauses of a batch are known before its events pass: each has its surroundings still ahead.
  for (Sink* const part : parts()) part->consume(batch, registry);
  for (const Event& event : batch.events()) {
    series_.add(event, batch, registry);
    timelines_.add(event, batch, registry);
    last_ns_ = std::max(last_ns_, event.time);
  }
}

void HtmlReportSink::summary(const RunSummary& summary, const Registry& registry) {
  run_ = summary;
  for (Sink* const part : parts()) part->summary(summary, registry);
  timelines_.finish(std::max(last_ns_, summary.end_ns));
}

HtmlReport HtmlReportSink::report(const Registry& registry) {
  HtmlReport report{.header = header_,
                    .run = run_,
                    .stats = stats_.report(registry),
                    .latency = latency_.report(registry),
                    .pauses = pauses_.report(),
                    .spans = spans_.report(),
                    .stalls = &stalls_.report(),
                    .tasks = &tasks_.report(),
                    .series = &series_,
                    .timelines = &timelines_,
                    .stacks = &registry.stacks()};
  bool has_allocations = false;
  for (const Profile* const profile : {&on_cpu_, &off_cpu_, &allocations_}) {
    ProfileReport found = profile->report(registry);
    if (found.shown(found.all).samples == 0) continue;
    has_allocations |= profile == &allocations_;
    report.profiles.push_back(std::move(found));
  }
  report.findings = findings_of({.stats = report.stats,
                                 .latency = report.latency,
                                 .pauses = report.pauses,
                                 .stalls = *report.stalls,
                                 .series = series_,
                                 .tasks = *report.tasks,
                                 .has_stacks = !report.profiles.empty(),
                                 .has_allocations = has_allocations,
                                 .is_cut = !run_.complete,
                                 .lacks = lacks_of(with_scheduler_gaps(run_, scheduler_gaps()), registry),
                                 .input = input_});
  return report;
}

}  // namespace rtev
