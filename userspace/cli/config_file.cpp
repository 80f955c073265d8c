// SPDX-License-Identifier: MIT
#include "cli/config_file.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/escape.hpp"

namespace rtev::cli {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw CLI::ParseError(fmt::format("{}: {}", escaped(path), why), CLI::ExitCodes::ConfigError);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
  const bool is_quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

/// Gives an option the values of the file, as if they were on the command line.
void set(CLI::Option& option, const std::string& key, const std::vector<std::string>& values, const std::string& path) {
  const bool is_flag = option.get_items_expected_max() == 0;
  if (is_flag && (values.size() != 1 || (values[0] != "true" && values[0] != "false")))
    refuse(path, fmt::format("'{}' is either true or false", escaped(key)));
  if (is_flag && values[0] == "false") return;
  for (const std::string& value : values) option.add_result(value);
  option.run_callback();
}

/// Not the parser of CLI11, which takes "[::]:9464" for the begin of a list.
void read(CLI::App& app, const std::string& path) {
  std::ifstream file(path);
  if (!file) refuse(path, "cannot read it");
  std::vector<std::pair<std::string, std::vector<std::string>>> options;
  for (std::string line; std::getline(file, line);) {
    const std::string_view content = trimmed(line);
    if (content.empty() || content.front() == '#') continue;
    const std::size_t equals = content.find('=');
    const std::string key(trimmed(content.substr(0, equals)));
    if (equals == std::string_view::npos || key.empty())
      refuse(path, fmt::format("not \"name = value\": {}", escaped(content)));
    const CLI::Option* const option = app.get_option_no_throw("--" + key);
    if (option == nullptr || key == "config" || key == "help" || key == "replace")
      refuse(path, fmt::format("there is no option '{}'", escaped(key)));
    auto known = std::ranges::find(options, key, [](const auto& entry) { return entry.first; });
    if (known == options.end()) known = options.insert(known, {key, {}});
    known->second.emplace_back(trimmed(content.substr(equals + 1)));
  }
  for (const auto& [key, values] : options)
    if (CLI::Option* const option = app.get_option("--" + key); option->count() == 0) set(*option, key, values, path);
}

}  // namespace

void add_config_option(CLI::App& app) {
  app.add_option_function<std::string>(
         "--config", [&app](const std::string& path) { read(app, path); },
         R"(take options from this file: lines "name = value", as in "listen = [::]:9464")")
      ->type_name("FILE");
}

}  // namespace rtev::cli
