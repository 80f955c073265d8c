// SPDX-License-Identifier: MIT
#include "cli/config_file.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/escape.hpp"
#include "cli/suggestion.hpp"

namespace rtev::cli {
namespace {

/// A line of the file.
struct Setting {
  std::string key{};
  std::string value{};
  std::size_t line = 0;
};

/// `line`: 0: of the whole file.
[[noreturn]] void refuse(const std::string& path, std::size_t line, const std::string& why) {
  const std::string place = line > 0 ? fmt::format("{}:{}", escaped(path), line) : escaped(path);
  throw CLI::ParseError(fmt::format("{}: {}", place, why), CLI::ExitCodes::ConfigError);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
  const bool is_quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

std::vector<std::string> keys_of(const CLI::App& app) {
  std::vector<std::string> keys;
  for (const CLI::Option* const option : app.get_options())
    for (const std::string& name : option->get_lnames())
      if (name != "config" && name != "help" && name != "help-all" && name != "replace") keys.push_back(name);
  return keys;
}

Setting parse_setting(std::string_view content, std::size_t line, const std::vector<std::string>& keys,
                      const std::string& path) {
  const std::size_t equals = content.find('=');
  Setting setting{.key = std::string(trimmed(content.substr(0, equals))), .line = line};
  if (equals == std::string_view::npos || setting.key.empty())
    refuse(path, line, fmt::format("not \"name = value\": {}", escaped(content)));
  if (std::ranges::find(keys, setting.key) == keys.end()) {
    const auto similar = similar_word(setting.key, keys);
    refuse(path, line,
           fmt::format("there is no option '{}'{}", escaped(setting.key),
                       similar ? "\nhint: did you mean " + *similar + "?" : ""));
  }
  setting.value = trimmed(content.substr(equals + 1));
  return setting;
}

/// Gives an option the values of the file, as if they were on the command line.
void set(CLI::Option& option, const std::vector<const Setting*>& settings, const std::string& path) {
  const Setting& first = *settings.front();
  const bool is_flag = option.get_items_expected_max() == 0;
  if (is_flag && first.value != "true" && first.value != "false")
    refuse(path, first.line, fmt::format("'{}' is either true or false", escaped(first.key)));
  const bool takes_several =
      option.get_items_expected_max() > 1 || option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  if (settings.size() > 1 && !takes_several)
    refuse(path, settings[1]->line, fmt::format("'{}' is set in line {} already", escaped(first.key), first.line));
  if (is_flag && first.value == "false") return;
  for (const Setting* const setting : settings) option.add_result(setting->value);
  try {
    option.run_callback();
  } catch (const CLI::ParseError& error) {
    // Of several values it is not known which one is wrong, but the message has it.
    refuse(path, first.line, error.what());
  }
}

/// Not the parser of CLI11, which takes "[::]:9464" for the begin of a list.
void read(CLI::App& app, const std::string& path) {
  std::ifstream file(path);
  if (!file) refuse(path, 0, "cannot read it");
  const std::vector<std::string> keys = keys_of(app);
  std::vector<Setting> settings;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::string_view content = trimmed(line);
    if (content.empty() || content.front() == '#') continue;
    settings.push_back(parse_setting(content, number, keys, path));
  }
  for (const Setting& setting : settings) {
    CLI::Option& option = *app.get_option("--" + setting.key);
    if (option.count() > 0) continue;  // on the command line, or set below by its first line
    std::vector<const Setting*> same;
    for (const Setting& other : settings)
      if (other.key == setting.key) same.push_back(&other);
    set(option, same, path);
  }
}

}  // namespace

void add_config_option(CLI::App& app) {
  app.add_option_function<std::string>(
         "--config", [&app](const std::string& path) { read(app, path); },
         R"(take options from this file: lines "name = value", as in "listen = [::]:9464")")
      ->type_name("FILE");
}

}  // namespace rtev::cli
