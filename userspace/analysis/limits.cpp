// SPDX-License-Identifier: MIT
#include "analysis/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/read_programs.hpp"
#include "base/escape.hpp"
#include "base/parse.hpp"
#include "base/text_format.hpp"

namespace rtev {
namespace {

/// What a limit is compared with.
double figure_of(const Histogram& durations, const Limit& limit) {
  switch (limit.figure) {
    case Limit::Figure::percentile:
      return static_cast<double>(durations.known_percentile(limit.percentile).value_or(durations.max()));
    case Limit::Figure::max:
      return static_cast<double>(durations.max());
    case Limit::Figure::mean:
      return durations.mean();
    case Limit::Figure::gc_share:
      break;
  }
  return 0;
}

/// The name of figure_of(): of too few durations for a percentile their longest one is compared.
std::string limit_name(const Histogram* durations, const Limit& limit) {
  const std::string name = limit.text.substr(0, limit.text.find('>'));
  const bool has_it = limit.figure != Limit::Figure::percentile || durations == nullptr ||
                      durations->known_percentile(limit.percentile).has_value();
  return has_it ? name : fmt::format("the longest (there are too few for {})", name);
}

std::string text_of(double figure, const Limit& limit) {
  if (limit.figure == Limit::Figure::gc_share) return fmt::format("{:.1f}%", figure * 100);
  return fmt::format("{}", Duration{static_cast<std::uint64_t>(figure)});
}

/// Why there are neither pauses nor times of domains; empty if there could be.
std::string why_no_programs(const Registry& registry) {
  const auto was_read = [](const ProcessInfo& process) { return events_read(process) == EventsRead::yes; };
  if (registry.others().words.events != 0 || std::ranges::any_of(registry.processes(), was_read)) return {};
  return "no program with runtime events was seen";
}

/// Why the share of no program is known; empty if one is.
std::string why_no_share(const StatsReport& report, const Registry& registry) {
  const auto is_known = [](const ProcessStats& process) { return process.figures.gc_share().has_value(); };
  if (std::ranges::any_of(report.processes, is_known)) return {};
  const std::string why = why_no_programs(registry);
  return why.empty() ? "of no domain it is known how long it was there" : why;
}

}  // namespace

std::optional<Limit> parse_limit(std::string_view text) {
  Limit limit{.text = std::string(text)};
  std::erase(limit.text, ' ');
  const std::size_t sign = limit.text.find('>');
  if (sign == std::string::npos) return std::nullopt;
  const std::string figure = limit.text.substr(0, sign), most = limit.text.substr(sign + 1);
  if (figure == "gc-share") {
    const auto share = parse_percentage(most);
    if (!share) return std::nullopt;
    limit.figure = Limit::Figure::gc_share;
    limit.most = *share;
    return limit;
  }
  const auto time = parse_limit_duration(most);
  if (!time) return std::nullopt;
  limit.most = static_cast<double>(time->count());
  if (figure == "max") {
    limit.figure = Limit::Figure::max;
  } else if (figure == "mean") {
    limit.figure = Limit::Figure::mean;
  } else {
    const auto percentile = figure.starts_with('p') ? parse_percentage(figure.substr(1) + "%") : std::nullopt;
    if (!percentile) return std::nullopt;
    limit.figure = Limit::Figure::percentile;
    limit.percentile = *percentile * 100;
  }
  return limit;
}

LimitCheck::LimitCheck(Sink& sink, std::vector<Limit> limits, std::function<LimitedDurations()> limited)
    : ForwardingSink(sink), limits_(std::move(limits)), limited_(std::move(limited)), finder_(*this) {
  if (std::ranges::find(limits_, Limit::Figure::gc_share, &Limit::figure) != limits_.end()) stats_.emplace();
}

void LimitCheck::header(const RunHeader& header) {
  not_recorded_ = header.not_recorded;
  finder_.header(header);
  if (stats_) stats_->header(header);
  sink_.header(header);
}

void LimitCheck::consume(const Batch& batch, const Registry& registry) {
  registry_ = &registry;
  if (!limits_.empty() && !limited_)
    for (const Event& event : batch.events()) finder_.add(event, batch, registry);
  if (stats_) stats_->consume(batch, registry);
  sink_.consume(batch, registry);
}

void LimitCheck::on_pause_end(const DomainLife& domain, const PhaseEnd& root) {
  const auto known = programs_.find(domain.process);
  if (known == programs_.end() && programs_.size() >= max_processes)
    return others_.pauses.record(root.end_ns - root.begin_ns);
  Program& program = known != programs_.end() ? known->second : programs_[domain.process];
  if (program.pid == 0) {
    program.pid = domain.pid;
    program.comm = registry_->process(domain.process).name;
  }
  program.pauses.record(root.end_ns - root.begin_ns);
}

void LimitCheck::summary(const RunSummary& summary, const Registry& registry) {
  sink_.summary(summary, registry);
  if (limits_.empty()) return;
  not_recorded_.note(summary.events);
  if (stats_) stats_->summary(summary, registry);
  const StatsReport report = stats_ ? stats_->report(registry) : StatsReport();
  const LimitedDurations durations = limited_ ? limited_() : this->durations(registry);
  for (const Limit& limit : limits_) {
    const bool is_share = limit.figure == Limit::Figure::gc_share;
    const bool lacks_phases = is_share ? not_recorded_.has_phases() : !limited_ && not_recorded_.lacks_pauses();
    std::string why_none = is_share ? why_no_share(report, registry) : durations.why_none;
    if (lacks_phases) why_none = not_recorded_.text({EventKind::begin});
    if (!why_none.empty())
      failures_.push_back(fmt::format("nothing was measured for '{}': {}", Escaped{limit.text}, why_none));
    else if (auto text = check(limit, durations.all, report))
      failures_.push_back(std::move(*text));
  }
}

LimitedDurations LimitCheck::durations(const Registry& registry) const {
  LimitedDurations pauses;
  pauses.all.reserve(programs_.size());
  for (const auto& [index, program] : programs_)
    pauses.all.push_back({.what = "pauses", .comm = program.comm, .pid = program.pid, .durations = &program.pauses});
  if (checked_together() > 0)
    pauses.all.push_back({.what = "pauses", .comm = "other processes", .durations = &others_.pauses});
  if (!pauses.all.empty()) return pauses;
  pauses.why_none = why_no_programs(registry);
  if (pauses.why_none.empty()) pauses.why_none = "no pause ended";
  return pauses;
}

/// Says of the greatest figure that it exceeds the limit, if it does.
std::optional<std::string> LimitCheck::check(const Limit& limit, const std::vector<Limited>& durations,
                                             const StatsReport& report) {
  double worst = limit.most;
  std::string who;
  std::size_t exceeding = 0;
  const auto compare = [&](double figure, std::string_view what, std::string_view comm, std::int32_t pid,
                           const Histogram* of) {
    if (figure <= limit.most) return;
    ++exceeding;
    if (figure <= worst) return;
    worst = figure;
    who = fmt::format("{} of {}{}{}", limit_name(of, limit), what, Escaped{comm},
                      pid == 0 ? std::string() : fmt::format("/{}", pid));
  };
  if (limit.figure == Limit::Figure::gc_share) {
    for (const ProcessStats& process : report.processes)
      compare(process.figures.gc_share().value_or(0), "", process.comm, process.pid, nullptr);
  } else {
    for (const Limited& of : durations)
      compare(figure_of(*of.durations, limit), "the " + of.what + " of ", of.comm, of.pid, of.durations);
  }
  if (who.empty()) return std::nullopt;
  std::string text = fmt::format("{} is {}, more than {}", who, text_of(worst, limit), text_of(limit.most, limit));
  if (exceeding == 2) text += "; another one exceeds it, too";
  if (exceeding > 2) text += fmt::format("; {} others exceed it, too", exceeding - 1);
  return text;
}

}  // namespace rtev
