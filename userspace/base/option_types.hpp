// SPDX-License-Identifier: MIT
// Types of command-line options that CLI11 does not have. Their errors read "'TEXT' is not EXPECTED".
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/help_formatter.hpp"
#include "base/parse.hpp"

namespace rtev {

/// A check of an option's argument, for CLI::Option::check(). `expected` completes "'TEXT' is not ...".
CLI::Validator expects(std::string expected, std::function<bool(const std::string& text)> accepts);

/// An option whose argument is given to `accept`, which stores it, or returns false if it is not `expected`. With
/// CLI::Option::take_all() each argument is.
CLI::Option* add_parsed_option(CLI::App& app, const std::string& name, const std::string& type,
                               const std::string& expected, std::function<bool(const std::string& text)> accept,
                               const std::string& help);

/// One of a few words, listed in this order in the help. `aliases` are accepted, too, but not listed.
template <typename Choice, typename Value>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Value& value,
                        std::vector<std::pair<std::string, Choice>> choices, const std::string& help,
                        const std::vector<std::pair<std::string, Choice>>& aliases = {}) {
  std::string type;
  ArgumentValues values;
  for (const auto& [word, choice] : choices) {
    type += (type.empty() ? "" : "|") + word;
    values.words.push_back(word);
  }
  choices.insert(choices.end(), aliases.begin(), aliases.end());
  const auto accept = [&value, choices = std::move(choices)](const std::string& text) {
    const auto found = std::ranges::find(choices, text, &std::pair<std::string, Choice>::first);
    if (found == choices.end()) return false;
    value = found->second;
    return true;
  };
  CLI::Option* const option = add_parsed_option(app, name, type, "one of " + type, accept, help);
  set_values(app, *option, std::move(values));
  return option;
}

/// A whole number from `min` to `max`.
template <typename Number, typename Value>
CLI::Option* add_number_option(CLI::App& app, const std::string& name, Value& value, Number min, Number max,
                               const std::string& help) {
  const auto accept = [&value, min, max](const std::string& text) {
    const auto parsed = parse_number<Number>(text);
    if (!parsed) return false;
    const Number number = *parsed;
    const bool fits = number >= min && number <= max;
    if (fits) value = number;
    return fits;
  };
  return add_parsed_option(app, name, "N", "a number from " + std::to_string(min) + " to " + std::to_string(max),
                           accept, help);
}

/// A duration such as 500ms: see parse_duration(). `Time` is std::chrono::nanoseconds or an optional of it.
template <typename Time>
CLI::Option* add_time_option(CLI::App& app, const std::string& name, Time& value, const std::string& help) {
  const auto accept = [&value](const std::string& text) {
    const auto time = parse_duration(text);
    if (time) value = *time;
    return time.has_value();
  };
  return add_parsed_option(app, name, "TIME", "a time above zero, e.g. 500ms, 5s, 2m", accept, help);
}

}  // namespace rtev
