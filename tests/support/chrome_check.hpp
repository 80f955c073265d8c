// SPDX-License-Identifier: MIT
// Parses Chrome trace events as viewers do, and collects everything that a viewer would not show well.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace rtev::test {

struct ChromeTrace {
  using Row = std::pair<std::int64_t, std::int64_t>;  ///< pid and tid

  struct Span {
    std::string name, category;
    std::uint64_t from = 0, to = 0;                  ///< ns since the trace's origin
    std::size_t depth = 0;                           ///< 0: outermost
    nlohmann::json args = nlohmann::json::object();  ///< of begin and end
  };
  struct Instant {
    std::string name;
    std::uint64_t time = 0;
    std::string scope;
    nlohmann::json args = nlohmann::json::object();
  };
  struct State {
    std::string name;
    std::uint64_t from = 0, to = 0;
    nlohmann::json args = nlohmann::json::object();
  };
  struct Value {
    std::uint64_t time = 0;
    nlohmann::json value;
  };
  struct Arrow {
    Row from, to;
    std::string from_span, to_span;
  };

  nlohmann::json header, summary;  ///< args of rtev_header and rtev_summary
  std::vector<nlohmann::json> events;
  std::map<std::int64_t, std::string> process_names;
  std::map<std::int64_t, std::int64_t> process_order;
  std::map<Row, std::string> row_names;
  std::map<Row, std::int64_t> row_order;
  std::map<Row, std::vector<Span>> spans;  ///< in the order they began
  std::map<Row, std::vector<Instant>> instants;
  std::map<Row, std::vector<State>> states;                                     ///< by time
  std::map<std::pair<std::int64_t, std::string>, std::vector<Value>> counters;  ///< by pid and "name argument"
  std::vector<Arrow> arrows;
  std::vector<std::string> problems;

  /// The time of a "ts" or "dur" in ns.
  static std::uint64_t ns(const nlohmann::json& microseconds);
  /// The only row with that name.
  Row row(const std::string& name) const;
};

/// Parses a finished trace, strictly.
ChromeTrace read_chrome_trace(const std::string& text);

/// Parses a trace cut after any of its lines, as leniently as viewers do. Spans and arrows may be incomplete.
ChromeTrace read_cut_chrome_trace(std::string text);

}  // namespace rtev::test
