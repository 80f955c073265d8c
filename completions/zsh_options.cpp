// SPDX-License-Identifier: MIT
// Options for completion.zsh.in: specifications for _arguments.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "completions/shell_options.hpp"

namespace rtev::completions {
namespace {

/// With a backslash before each of the characters.
std::string with_backslashes(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.contains(c)) out += '\\';
    out += c;
  }
  return out;
}

std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// The part of a specification that says what an argument is. A blank before a function: _arguments adds nothing.
std::string action(const ArgumentValues& values, const std::string& function) {
  const auto words = [](const std::vector<std::string>& all) { return fmt::format("{}", fmt::join(all, " ")); };
  if (values.is_list) return fmt::format(" {}_list {}", function, words(values.words));
  if (!values.words.empty()) return fmt::format("({})", words(values.words));
  if (!values.suffixes.empty())
    return fmt::format(" {}_files{} {}", function, values.pids ? "_or_pids" : "", words(values.suffixes));
  if (values.directories) return "_files -/";
  if (values.pids) return " " + function + "_pids";
  if (values.process_names) return " " + function + "_names";
  return " ";
}

std::string argument(const CLI::Option& option, const HelpFormatter& values, const std::string& function) {
  const std::string type =
      with_backslashes(option.get_positional() ? option.get_name() : option.get_type_name(), ":\\");
  return fmt::format(":{}:{}", type, action(values.values_of(option), function));
}

/// E.g. '(-o --output)'{-o+,--output=}'[write to FILE]:FILE: _files'
std::string specification(const CLI::Option& option, const HelpFormatter& values, const std::string& function) {
  const bool has_argument = takes_argument(option);
  const auto names = names_of(option);
  std::vector<std::string> spelled;
  for (const std::string& name : names)
    spelled.push_back(name + (!has_argument ? "" : name.starts_with("--") ? "=" : "+"));
  const std::string before = is_repeatable(option) ? "*" : fmt::format("({})", fmt::join(names, " "));
  std::string after = "[" + with_backslashes(short_description(option), "[]:\\") + "]";
  if (has_argument) after += (is_argument_optional(option) ? ":" : "") + argument(option, values, function);
  if (spelled.size() == 1) return single_quoted(before + spelled.front() + after);
  return fmt::format("{}{{{}}}{}", single_quoted(before), fmt::join(spelled, ","), single_quoted(after));
}

}  // namespace

std::string zsh_options(const Commands& commands, const HelpFormatter& values, const std::string& function) {
  std::string descriptions, branches;
  for (const Command& command : commands) {
    if (!command.name.empty())
      descriptions +=
          fmt::format("    {}\n", single_quoted(command.name + ":" + with_backslashes(command.description, ":\\")));
    branches += fmt::format("    '{}')\n      arguments=(\n", command.name);
    for (const CLI::Option* const option : command.options)
      branches += fmt::format("        {}\n", specification(*option, values, function));
    if (command.positional != nullptr)
      branches += fmt::format("        {}\n", single_quoted(argument(*command.positional, values, function)));
    branches += fmt::format("      )\n{}      ;;\n", command.starts_program ? "      starts_program=yes\n" : "");
  }
  return fmt::format(
      "# Sets `commands` to the subcommands.\n{0}_commands() {{\n  commands=(\n{1}  )\n}}\n\n"
      "# {0}_arguments COMMAND: sets `arguments` to what _arguments needs to know of it, and `starts_program` if -- "
      "may\n"
      "# follow; '' is the program without a subcommand.\n{0}_arguments() {{\n  case $1 in\n{2}  esac\n}}\n",
      function, descriptions, branches);
}

}  // namespace rtev::completions
