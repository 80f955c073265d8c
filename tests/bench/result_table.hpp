// SPDX-License-Identifier: MIT
// Results of benchmarks: medians of interleaved runs, the peers they are compared with, and goals.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/chart.hpp"
#include "bench/machine.hpp"

namespace rtev::bench {

/// Runs of one measured thing, all in one unit.
struct Series {
  std::string name;  ///< "rtev", "OCaml's C reader", "untraced"
  std::vector<double> runs;

  /// Each is NaN without runs.
  double median() const;
  double least() const;
  double greatest() const;
  /// That holds the median of all possible runs with a probability of 95 %, whatever their distribution; without limits
  /// if there are fewer than six runs.
  std::pair<double, double> interval() const;
};

/// The goal of a figure; `text` is printed in the table, e.g. "at least 8 x".
struct Goal {
  std::string text;
  std::function<bool(double)> met;

  static Goal at_least(double bound, std::string_view unit);
  static Goal at_most(double bound, std::string_view unit);
};

/// One line of the table.
struct Row {
  std::string section;  ///< name of the benchmark: "decode"
  std::string what;     ///< "e=16, runtime events"
  std::string unit;     ///< unit of the series: "M events/s", "ns/event", "%"
  Series subject;
  /// The peer it is compared with, measured in turn with it in the same run. The ratio is subject / peer, of the
  /// medians.
  std::optional<Series> peer{};
  /// Applies to the ratio if there is a peer, else to the subject's median, or to `figure` if the benchmark sets that.
  std::optional<Goal> goal{};
  std::optional<double> figure{};
  std::string note{};  ///< how it was measured, or why a goal is missed

  std::optional<double> ratio() const;
  double judged() const;
  /// Empty without a goal. A figure that could not be measured misses its goal.
  std::optional<bool> met() const;
};

/// Collects rows; prints a table and writes JSON. Nothing is asserted.
class Report {
 public:
  /// Also prints the row to stderr at once, to show the progress of a long run.
  void add(Row row);
  void add(Curve curve) { curves_.push_back(std::move(curve)); }
  void print_table(std::ostream& out, const Machine& machine) const;
  /// {"schema":1,"machine":{…},"rows":[…]}
  void print_json(std::ostream& out, const Machine& machine) const;
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Curve>& curves() const { return curves_; }

 private:
  std::vector<Row> rows_;
  std::vector<Curve> curves_;
};

/// Number and length of runs; --quick makes both small.
struct Effort {
  int rounds = 7;              ///< runs of each series, interleaved
  double seconds = 1.0;        ///< length of one run, if it can be chosen
  int bursts = 25;             ///< of each case of `burst`, a second each
  double traced_seconds = 60;  ///< time limit for each program of `traced`
};

}  // namespace rtev::bench
