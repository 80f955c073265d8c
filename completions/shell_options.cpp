// SPDX-License-Identifier: MIT
#include "completions/shell_options.hpp"

#include <algorithm>
#include <array>
#include <ranges>

namespace rtev::completions {
namespace {

constexpr std::size_t max_description = 80;  ///< bytes

Command command_of(const CLI::App& app, const HelpFormatter& formatter) {
  Command command{
      .name = {}, .description = app.get_description(), .options = {}, .starts_program = formatter.allows_command(app)};
  if (app.get_parent() != nullptr) command.name = app.get_name();
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_positional())
      command.positional = option;
    else
      command.options.push_back(option);
  }
  return command;
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

}  // namespace

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string short_description(const CLI::Option& option) {
  std::string text = option.get_description();
  for (const std::string_view end : {"\n", "; ", " (default", ", e.g.", ". "})
    text.resize(std::min(text.find(end), text.size()));
  if (text.size() <= max_description) return text;
  text.resize(text.rfind(' ', max_description));
  return text + " ...";
}

bool takes_argument(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

bool is_argument_optional(const CLI::Option& option) {
  return option.get_expected_min() == 0;
}

bool is_repeatable(const CLI::Option& option) {
  return option.get_items_expected_max() > 1;
}

Result<std::string> fill_completion(std::string_view text, const CLI::App& program, Shell shell) {
  const auto formatter = help_formatter_of(program);
  if (formatter == nullptr)
    return std::unexpected(Error{.what = "cannot make a completion", .why = "the values of options are not known"});
  Commands commands{command_of(program, *formatter)};
  for (const CLI::App* const command : program.get_subcommands({}))
    commands.push_back(command_of(*command, *formatter));

  std::string function = "_" + program.get_name();
  std::ranges::replace(function, '-', '_');
  constexpr std::array generators{bash_options, zsh_options, fish_options};
  const std::string options = generators.at(static_cast<std::size_t>(shell))(commands, *formatter, function);
  std::string out(text);
  replace_all(out, "@options@\n", options);
  replace_all(out, "@PROGRAM@", program.get_name());
  replace_all(out, "@FUNCTION@", function);
  return out;
}

}  // namespace rtev::completions
