// SPDX-License-Identifier: MIT
// What the HTML report says in words: findings with a score, a figure and what to do next.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/html_report/report_series.hpp"
#include "analysis/latency/latency_figures.hpp"
#include "analysis/pauses/pauses_report.hpp"
#include "analysis/stalls/stalls_report.hpp"
#include "analysis/stats/stats_report.hpp"
#include "analysis/tasks/tasks_report.hpp"
#include "stream/losses.hpp"

namespace rtev {

enum class Score : std::uint8_t { ok, info, warning, bad };
/// "ok", "info", ...
std::string_view to_string(Score score);

struct Finding {
  Score score = Score::ok;
  std::string_view section{};  ///< of the report that shows it: the id of an element
  std::string title{};         ///< a few words
  std::string text{};          ///< sentences with figures; names are escaped
  std::string next{};          ///< a sentence; empty: nothing needs to be done
  std::string command{};       ///< a command that tells more; empty: none
};

/// What findings are made of. All of them are of the same run.
struct FindingSources {
  const StatsReport& stats;
  const LatencyReport& latency;
  const PausesReport& pauses;
  const StallsReport& stalls;
  const ReportSeries& series;
  const TasksReport& tasks;
  bool has_stacks = false;
  bool has_allocations = false;  ///< stacks of allocations
  bool is_cut = false;           ///< the end of the recording is missing
  std::vector<Lack> lacks{};
  std::string input{};  ///< a recording as an argument of a shell; empty: none
};

/// The most severe first. Never empty.
std::vector<Finding> findings_of(const FindingSources& sources);

}  // namespace rtev
