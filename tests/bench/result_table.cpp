// SPDX-License-Identifier: MIT
#include "bench/result_table.hpp"

#include <fmt/core.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <utility>

namespace rtev::bench {
namespace {

constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

/// Three significant digits, without an exponent; four between 1 and 2, where ratios are.
std::string number(double value) {
  if (std::isnan(value)) return "-";
  const double size = std::fabs(value);
  if (size >= 100 || size == 0) return fmt::format("{:.0f}", value);
  if (size >= 10) return fmt::format("{:.1f}", value);
  if (size >= 2) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

std::string spread(const Series& series) {
  if (series.runs.size() < 2) return {};
  return fmt::format("{}..{}", number(series.least()), number(series.greatest()));
}

std::string verdict(const Row& row) {
  const auto met = row.met();
  if (!met) return {};
  const std::string judged = row.figure ? fmt::format(" ({})", number(*row.figure)) : std::string();
  return fmt::format("{}{}: {}", *met ? "met" : "MISSED", judged, row.goal->text);
}

constexpr std::size_t column_count = 7;
using Columns = std::array<std::string, column_count>;

Columns columns(const Row& row) {
  const auto ratio = row.ratio();
  return {row.what,
          row.subject.name,
          fmt::format("{} {}", number(row.subject.median()), row.unit),
          spread(row.subject),
          row.peer ? fmt::format("{} {}", number(row.peer->median()), row.peer->name) : std::string(),
          ratio ? number(*ratio) + " x" : std::string(),
          verdict(row)};
}

std::string line(const Columns& cells, std::span<const std::size_t> widths) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) text += fmt::format("{:<{}}  ", cells[i], widths[i]);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

nlohmann::ordered_json to_json(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

nlohmann::ordered_json to_json(const Series& series) {
  return {{"name", series.name}, {"median", to_json(series.median())}, {"runs", series.runs}};
}

nlohmann::ordered_json to_json(const Row& row) {
  nlohmann::ordered_json json{
      {"section", row.section}, {"what", row.what}, {"unit", row.unit}, {"subject", to_json(row.subject)}};
  if (row.peer) json["peer"] = to_json(*row.peer);
  if (const auto ratio = row.ratio()) json["ratio"] = to_json(*ratio);
  if (row.goal)
    json["goal"] = {{"text", row.goal->text}, {"figure", to_json(row.judged())}, {"met", row.met().value_or(false)}};
  if (!row.note.empty()) json["note"] = row.note;
  return json;
}

}  // namespace

double Series::median() const {
  if (runs.empty()) return not_measured;
  std::vector<double> sorted = runs;
  std::ranges::sort(sorted);
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double Series::least() const {
  return runs.empty() ? not_measured : std::ranges::min(runs);
}

double Series::greatest() const {
  return runs.empty() ? not_measured : std::ranges::max(runs);
}

std::pair<double, double> Series::interval() const {
  // Of n runs, the number above the median is binomial: n/2 with a deviation of sqrt(n)/2.
  const auto count = static_cast<double>(runs.size());
  const double outside = std::floor((count - 1.96 * std::sqrt(count)) / 2);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (outside < 0) return {-infinity, infinity};
  std::vector<double> sorted = runs;
  std::ranges::sort(sorted);
  const auto place = static_cast<std::size_t>(outside);
  return {sorted[place], sorted[sorted.size() - 1 - place]};
}

Goal Goal::at_least(double bound, std::string_view unit) {
  return {.text = fmt::format("at least {:g} {}", bound, unit),
          .met = [bound](double value) { return value >= bound; }};
}

Goal Goal::at_most(double bound, std::string_view unit) {
  return {.text = fmt::format("at most {:g} {}", bound, unit), .met = [bound](double value) { return value <= bound; }};
}

std::optional<double> Row::ratio() const {
  if (!peer) return std::nullopt;
  const double value = subject.median() / peer->median();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

double Row::judged() const {
  if (figure) return *figure;
  return peer ? ratio().value_or(not_measured) : subject.median();
}

std::optional<bool> Row::met() const {
  if (!goal) return std::nullopt;
  const double value = judged();
  return !std::isnan(value) && goal->met(value);
}

void Report::add(Row row) {
  std::string text;
  for (const std::string& cell : columns(row)) {
    if (!cell.empty()) text += "  " + cell;
  }
  fmt::print(stderr, "{}:{}\n", row.section, text);
  if (!row.note.empty()) fmt::print(stderr, "    {}\n", row.note);
  rows_.push_back(std::move(row));
}

void Report::print_table(std::ostream& out, const Machine& machine) const {
  for (const auto& [name, value] : machine) fmt::print(out, "{:<12} {}\n", name, value);
  const Columns titles{"MEASURED", "", "MEDIAN", "LEAST..MOST", "AGAINST (MEDIAN)", "RATIO", "GOAL"};
  std::array<std::size_t, column_count> widths{};
  for (std::size_t i = 0; i < column_count; ++i) widths[i] = titles[i].size();
  for (const Row& row : rows_) {
    const Columns cells = columns(row);
    for (std::size_t i = 0; i < column_count; ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string section;
  for (const Row& row : rows_) {
    if (section != row.section) {
      section = row.section;
      fmt::print(out, "\n{}\n{}\n", section, line(titles, widths));
    }
    fmt::print(out, "{}\n", line(columns(row), widths));
    if (!row.note.empty()) fmt::print(out, "    {}\n", row.note);
  }
}

void Report::print_json(std::ostream& out, const Machine& machine) const {
  nlohmann::ordered_json json{{"schema", 1}};
  for (const auto& [name, value] : machine) json["machine"][name] = value;
  json["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows_) json["rows"].push_back(to_json(row));
  out << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace rtev::bench
