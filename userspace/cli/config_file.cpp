// SPDX-License-Identifier: MIT
#include "cli/config_file.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "base/escape.hpp"

namespace rtev::cli {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw CLI::ParseError(fmt::format("{}: {}", escaped(path), why), CLI::ExitCodes::ConfigError);
}

/// Gives an option the values of the file, as if they were on the command line, where CLI11 looks at them afterwards.
void set(CLI::Option& option, const CLI::ConfigItem& item, const std::string& path) {
  const bool is_flag = option.get_items_expected_max() == 0;
  if (is_flag && (item.inputs.size() != 1 || (item.inputs[0] != "true" && item.inputs[0] != "false")))
    refuse(path, fmt::format("'{}' is either true or false", item.name));
  if (is_flag && item.inputs[0] == "false") return;
  for (const std::string& value : item.inputs) option.add_result(value);
}

void read(CLI::App& app, const std::string& path) {
  std::ifstream file(path);
  if (!file) refuse(path, "cannot read it");
  for (const CLI::ConfigItem& item : CLI::ConfigINI().from_config(file)) {
    if (item.name == "++" || item.name == "--") continue;  // CLI11 marks sections so
    CLI::Option* const option = item.parents.empty() ? app.get_option_no_throw("--" + item.name) : nullptr;
    if (option == nullptr || item.name == "config" || item.name == "help")
      refuse(path, fmt::format("there is no option '{}'", escaped(item.name)));
    if (option->count() == 0) set(*option, item, path);
  }
}

}  // namespace

void add_config_option(CLI::App& app) {
  app.add_option_function<std::string>(
         "--config", [&app](const std::string& path) { read(app, path); },
         "take options from this file: lines \"name = value\", as in \"listen = [::]:9464\"")
      ->type_name("FILE");
}

}  // namespace rtev::cli
