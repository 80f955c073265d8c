// SPDX-License-Identifier: MIT
// Cost of an event by number of processes, number of domains and rate.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/idle_fleet.hpp"
#include "bench/tool.hpp"

namespace rtev::bench {
namespace {

struct Point {
  std::string what;
  Fleet::Size size;
  double events_per_second;
};

struct Measured {
  Series ns_per_event{.name = "rtev-bpf", .runs = {}};
  std::uint64_t events = 0;
  std::uint64_t lost_words = 0;
};

/// Words lost by all processes, from the last JSON line.
std::uint64_t lost_words(const std::string& lines) {
  std::uint64_t sum = 0;
  for (const auto& process : summary_of(lines).value("processes", nlohmann::json::array()))
    sum += process.value("words", nlohmann::json::object()).value("lost", std::uint64_t{0});
  return sum;
}

void measure(const Point& point, double seconds, Measured& measured) {
  // Events held back for ordering have been output by then.
  constexpr std::chrono::milliseconds rest{300};
  Fleet fleet(point.size);
  // Counts only these processes, in case others on this host write events.
  Tool tool(to_nothing({"-n", Fleet::name}));
  std::this_thread::sleep_for(rest);
  const std::uint64_t cpu = tool.cpu_ns();
  const std::uint64_t events = fleet.write(point.events_per_second, seconds);
  std::this_thread::sleep_for(rest);
  const std::uint64_t spent = tool.cpu_ns() - cpu;
  measured.ns_per_event.runs.push_back(static_cast<double>(spent) /
                                       static_cast<double>(std::max<std::uint64_t>(events, 1)));
  measured.events += events;
  measured.lost_words += lost_words(tool.interrupt().out);
}

enum class Expected { flat, falling };

void measure(Report& report, const std::string& curve, const std::vector<Point>& points, Expected expected,
             const Effort& effort) {
  const int rounds = std::max(1, effort.rounds / 2);
  const double seconds = effort.seconds < 1 ? effort.seconds : 1.5 * effort.seconds;
  std::vector<Measured> measured(points.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < points.size(); ++i) measure(points[i], seconds, measured[i]);
  }
  double least = measured.front().ns_per_event.median(), most = least;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double median = measured[i].ns_per_event.median();
    least = std::min(least, median);
    most = std::max(most, median);
    report.add(
        {.section = "growth",
         .what = curve + ": " + points[i].what,
         .unit = "ns/event",
         .subject = measured[i].ns_per_event,
         .note = measured[i].lost_words == 0
                     ? fmt::format("cpu of all threads, reading and merging; {} events, none lost", measured[i].events)
                     : fmt::format("cpu of all threads, reading and merging; {} events and {} words lost",
                                   measured[i].events, measured[i].lost_words)});
  }
  const bool is_flat = expected == Expected::flat;
  report.add(
      {.section = "growth",
       .what = curve + (is_flat ? ": dearest to cheapest" : ": fastest to slowest"),
       .unit = "x",
       .subject = {.name = "rtev-bpf",
                   .runs = {is_flat ? most / least
                                    : measured.back().ns_per_event.median() / measured.front().ns_per_event.median()}},
       .goal = Goal::at_most(is_flat ? 2 : 1, "x"),
       .note = is_flat ? "of the medians" : "of the medians; checking a ring has a cost, so few events are expensive"});
}

}  // namespace

void growth(Report& report, const Effort& effort) {
  constexpr double total_rate = 1e6;
  std::vector<Point> processes, domains, rates;
  for (const std::uint32_t count : {1u, 10u, 100u, 500u})
    processes.push_back({std::to_string(count), {.processes = count, .domains = 1}, total_rate});
  for (const std::uint32_t count : {1u, 8u, 32u, 128u})
    domains.push_back({std::to_string(count), {.processes = 1, .domains = count}, total_rate});
  for (const double rate : {10e3, 100e3, 1e6, 5e6})
    rates.push_back({fmt::format("{:g}k", rate / 1e3), {.processes = 1, .domains = 1}, rate});
  measure(report, "processes, 1M events/s in total", processes, Expected::flat, effort);
  measure(report, "domains of one process, 1M events/s in total", domains, Expected::flat, effort);
  measure(report, "events/s of one domain", rates, Expected::falling, effort);
}

}  // namespace rtev::bench
