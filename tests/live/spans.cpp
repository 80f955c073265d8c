// SPDX-License-Identifier: MIT
#include "live/spans.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

namespace rtev::test {
namespace {

enum class State : std::uint8_t { unknown, on_cpu, runnable, blocked };

/// The state of a thread, and since when.
struct Change {
  std::uint64_t time;
  State state;
};

std::vector<Change> changes_of(const Trace& trace, pid_t tid) {
  std::vector<Change> changes{{0, State::unknown}};
  for (const Json& event : trace.events) {
    const std::uint64_t time = event["ts"];
    if (event["type"] == "wakeup" && event["tid"] == tid) {
      if (changes.back().state != State::on_cpu) changes.push_back({time, State::runnable});
    } else if (event["type"] == "switch" && event["next"]["tid"] == tid) {
      changes.push_back({time, State::on_cpu});
    } else if (event["type"] == "switch" && event["prev"]["tid"] == tid) {
      changes.push_back({time, event["prev"]["state"] == "preempted" ? State::runnable : State::blocked});
    }
  }
  return changes;
}

bool is_near(double value, double expected, double tolerance) {
  return std::abs(value - expected) <= tolerance;
}

}  // namespace

std::vector<PhaseSpan> phase_spans(const Trace& trace) {
  std::map<std::pair<pid_t, int>, std::vector<PhaseSpan>> open;
  std::vector<PhaseSpan> spans;
  for (const Json& event : trace.events) {
    const bool begins = event["type"] == "begin";
    if ((!begins && event["type"] != "end") || event["name"] == "domain_condition_wait") continue;
    const pid_t pid = event["pid"];
    const int domain = event["domain"];
    std::vector<PhaseSpan>& stack = open[{pid, domain}];
    if (begins) {
      stack.push_back({.pid = pid, .domain = domain, .name = event["name"], .begin = event["ts"]});
    } else if (!stack.empty() && stack.back().name == event["name"].get<std::string>()) {
      stack.back().end = event["ts"];
      stack.back().outermost = stack.size() == 1;
      spans.push_back(stack.back());
      stack.pop_back();
    }
  }
  return spans;
}

std::vector<PhaseSpan> pauses_of(const Trace& trace) {
  std::vector<PhaseSpan> spans = phase_spans(trace);
  std::erase_if(spans, [](const PhaseSpan& span) { return !span.outermost; });
  return spans;
}

bool has_all_switches(const Trace& trace, pid_t tid) {
  std::optional<bool> runs;
  for (const Json& event : trace.of("switch")) {
    const bool enters = event["next"]["tid"] == tid, leaves = event["prev"]["tid"] == tid;
    if (!enters && !leaves) continue;
    if (runs && *runs == enters) return false;
    runs = enters;
  }
  return true;
}

ThreadTimes times_of(const Trace& trace, pid_t tid, const std::vector<PhaseSpan>& spans) {
  const std::vector<Change> changes = changes_of(trace, tid);
  ThreadTimes times;
  for (const PhaseSpan& span : spans) {
    auto change = std::prev(std::ranges::upper_bound(changes, span.begin, {}, &Change::time));
    for (; change != changes.end() && change->time < span.end; ++change) {
      const auto next = std::next(change);
      const std::uint64_t from = std::max(span.begin, change->time),
                          to = next == changes.end() ? span.end : std::min(span.end, next->time);
      std::uint64_t* const sums[] = {&times.unknown, &times.on_cpu, &times.runnable, &times.blocked};
      *sums[static_cast<std::size_t>(change->state)] += to - from;
    }
  }
  return times;
}

std::string difference(const Json& distribution, std::vector<std::uint64_t> lengths) {
  std::ostringstream text;
  const auto compare = [&](const std::string& what, double got, double expected, double tolerance) {
    if (!is_near(got, expected, tolerance)) text << what << " is " << got << ", not " << expected << "; ";
  };
  std::ranges::sort(lengths);
  const auto count = static_cast<double>(lengths.size());
  double total = 0, squares = 0;
  for (const std::uint64_t length : lengths) total += static_cast<double>(length);
  compare("count", distribution.at("count"), count, 0);
  compare("total_ns", distribution.at("total_ns"), total, 0);
  if (lengths.empty() || !text.str().empty()) return text.str();

  const double mean = total / count;
  for (const std::uint64_t length : lengths) squares += std::pow(static_cast<double>(length) - mean, 2);
  const double deviation = std::sqrt(squares / count);
  compare("mean_ns", distribution.at("mean_ns"), mean, 0.1);
  compare("stddev_ns", distribution.at("stddev_ns"), deviation, 0.1 + deviation * 1e-9);
  compare("min_ns", distribution.at("min_ns"), static_cast<double>(lengths.front()), 0);
  compare("max_ns", distribution.at("max_ns"), static_cast<double>(lengths.back()), 0);
  for (const auto& [name, value] : distribution.at("percentiles_ns").items()) {
    const auto rank = static_cast<std::size_t>(std::floor(std::stod(name) / 100 * count + 0.5));
    if (value.is_null()) {  // of too few there is none
      const double percentile = std::stod(name);
      if (percentile >= 100 || count * std::min(percentile, 100 - percentile) / 100 > 1)
        text << "percentile " << name << " is null; ";
      continue;
    }
    const auto exact = static_cast<double>(lengths[std::clamp<std::size_t>(rank, 1, lengths.size()) - 1]);
    compare("percentile " + name, value, exact, exact / 1000);
  }
  return text.str();
}

}  // namespace rtev::test
