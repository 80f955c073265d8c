// SPDX-License-Identifier: MIT
// What benchmarks say: medians of interleaved runs, what they were measured against, and the goal they have.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/machine.hpp"

namespace rtev::bench {

/// The runs of one thing measured. All in one unit.
struct Series {
  std::string name;  ///< "rtev", "OCaml's C reader", "untraced"
  std::vector<double> runs;

  /// Each is NaN without runs.
  double median() const;
  double least() const;
  double greatest() const;
};

/// What a figure should be; `text` as it stands in the table, e.g. "at least 8 x".
struct Goal {
  std::string text;
  std::function<bool(double)> met;

  static Goal at_least(double bound, std::string_view unit);
  static Goal at_most(double bound, std::string_view unit);
};

/// One line of the table.
struct Row {
  std::string section;  ///< which benchmark: "decode"
  std::string what;     ///< "e=16, runtime events"
  std::string unit;     ///< of the series: "M events/s", "ns/event", "%"
  Series subject;
  /// What it is compared with, measured in turns with it in the same run. The ratio is subject / peer, of the medians.
  std::optional<Series> peer{};
  /// Of the ratio where there is a peer, else of the subject's median; a benchmark may set `figure` to judge another.
  std::optional<Goal> goal{};
  std::optional<double> figure{};
  std::string note{};  ///< how it was measured, or why a goal is missed

  std::optional<double> ratio() const;
  double judged() const;
  /// Nothing without a goal. What could not be measured misses its goal.
  std::optional<bool> met() const;
};

/// Collects rows; prints a table for people and JSON for programs. Nothing is asserted.
class Report {
 public:
  /// Prints the row to stderr at once, so that a long run shows where it is.
  void add(Row row);
  void print_table(std::ostream& out, const Machine& machine) const;
  /// {"schema":1,"machine":{…},"rows":[…]}
  void print_json(std::ostream& out, const Machine& machine) const;
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
};

/// How often and how long to measure; --quick makes both small.
struct Effort {
  int rounds = 7;        ///< runs of each series, taken in turns
  double seconds = 1.0;  ///< of one run, where time is free to choose
};

}  // namespace rtev::bench
