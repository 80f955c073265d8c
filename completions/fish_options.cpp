// SPDX-License-Identifier: MIT
// Options for completion.fish.in: calls of `complete`, one for what several subcommands have in common.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

#include "completions/shell_options.hpp"

namespace rtev::completions {
namespace {

std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

/// For -a: words, and functions that print some.
std::string offers(const ArgumentValues& values, const std::string& function) {
  std::vector<std::string> parts;
  const auto words = [](const std::vector<std::string>& all) { return fmt::format("{}", fmt::join(all, " ")); };
  if (!values.words.empty())
    parts.push_back(values.is_list ? fmt::format("({}_list {})", function, words(values.words)) : words(values.words));
  if (!values.suffixes.empty()) parts.push_back(fmt::format("({}_files {})", function, words(values.suffixes)));
  if (values.directories) parts.push_back("(" + function + "_files)");
  if (values.pids) parts.push_back("(" + function + "_pids)");
  if (values.process_names) parts.push_back("(" + function + "_names)");
  return parts.empty() ? "" : fmt::format(" -a {}", single_quoted(fmt::format("{}", fmt::join(parts, " "))));
}

/// The arguments of `complete` that say what an option is.
std::string definition(const CLI::Option& option, const HelpFormatter& values, const std::string& function) {
  std::string out;
  for (const std::string& name : option.get_snames()) out += " -s " + name;
  for (const std::string& name : option.get_lnames()) out += " -l " + name;
  if (takes_argument(option)) out += " -x" + offers(values.values_of(option), function);
  return out + " -d " + single_quoted(short_description(option));
}

}  // namespace

std::string fish_options(const Commands& commands, const HelpFormatter& values, const std::string& function) {
  std::string names, starters, out;
  std::vector<std::pair<std::string, std::vector<std::string>>> definitions;  // with the subcommands that have them
  const auto define = [&definitions](const std::string& text, const std::string& command) {
    const auto known = std::ranges::find(definitions, text, &decltype(definitions)::value_type::first);
    (known != definitions.end() ? known->second : definitions.emplace_back(text, std::vector<std::string>()).second)
        .push_back(single_quoted(command));
  };
  for (const Command& command : commands) {
    if (command.starts_program) starters += " " + single_quoted(command.name);
    if (!command.name.empty()) {
      names += " " + command.name;
      out += fmt::format("complete -c @PROGRAM@ -n {}_is_first -a {} -d {}\n", function, command.name,
                         single_quoted(command.description));
    }
    for (const CLI::Option* const option : command.options) define(definition(*option, values, function), command.name);
    if (command.positional != nullptr) define(offers(values.values_of(*command.positional), function), command.name);
  }
  for (const auto& [definition, which] : definitions)
    out += fmt::format("complete -c @PROGRAM@ -n \"{}_in {}\"{}\n", function, fmt::join(which, " "), definition);
  return fmt::format(
      "# The subcommands, and those after which -- starts a program.\n"
      "set -g {0}_commands{1}\nset -g {0}_starters{2}\n{3}",
      function, names, starters, out);
}

}  // namespace rtev::completions
