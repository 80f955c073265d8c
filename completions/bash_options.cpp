// SPDX-License-Identifier: MIT
// Options for completion.bash.in: words, and calls of its functions in branches of `case`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>

#include "completions/shell_options.hpp"

namespace rtev::completions {
namespace {

/// Calls of functions that offer the values, separated by "; ". Of unknown values, ":" offers none.
std::string offers(const ArgumentValues& values, const std::string& function) {
  std::vector<std::string> calls;
  const auto words = [](const std::vector<std::string>& all) { return fmt::format("{}", fmt::join(all, " ")); };
  if (!values.words.empty())
    calls.push_back(fmt::format("{}_{} {}", function, values.is_list ? "list" : "words", words(values.words)));
  if (!values.suffixes.empty()) calls.push_back(fmt::format("{}_files {}", function, words(values.suffixes)));
  if (values.directories) calls.push_back(function + "_files");
  if (values.pids) calls.push_back(function + "_pids");
  if (values.process_names) calls.push_back(function + "_names");
  return calls.empty() ? ":" : fmt::format("{}", fmt::join(calls, "; "));
}

/// Branches by "COMMAND:OPTION" of what each option offers; "*" stands for all commands where they agree.
std::string value_branches(const Commands& commands, const HelpFormatter& values, const std::string& function) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> of_name;  // option: offers: commands
  for (const Command& command : commands) {
    for (const CLI::Option* const option : command.options) {
      if (!takes_argument(*option)) continue;
      for (const std::string& name : names_of(*option))
        of_name[name][offers(values.values_of(*option), function)].push_back(command.name);
    }
    if (command.positional != nullptr)
      of_name[""][offers(values.values_of(*command.positional), function)].push_back(command.name);
  }
  std::map<std::string, std::vector<std::string>> patterns;  // by offers
  for (const auto& [name, by_offers] : of_name) {
    for (const auto& [offer, names] : by_offers) {
      if (by_offers.size() == 1 && !name.empty())
        patterns[offer].push_back("*:" + name);
      else
        for (const std::string& command : names) patterns[offer].push_back(fmt::format("{}:{}", command, name));
    }
  }
  std::string out;
  for (const auto& [offer, which] : patterns) out += fmt::format("    {}) {} ;;\n", fmt::join(which, " | "), offer);
  return out;
}

}  // namespace

std::string bash_options(const Commands& commands, const HelpFormatter& values, const std::string& function) {
  std::string names, branches;
  for (const Command& command : commands) {
    if (!command.name.empty()) names += (names.empty() ? "" : " ") + command.name;
    std::vector<std::string> words;
    for (const CLI::Option* const option : command.options)
      for (std::string& name : names_of(*option)) words.push_back(std::move(name));
    if (command.starts_program) words.emplace_back("--");
    branches += fmt::format("    '{}') options='{}' ;;\n", command.name, fmt::join(words, " "));
  }
  return fmt::format(
      "# The subcommands.\n{0}_commands='{1}'\n\n"
      "# {0}_options COMMAND: sets `options` to its options; '' is the program without a subcommand.\n"
      "{0}_options() {{\n  case $1 in\n{2}  esac\n}}\n\n"
      "# {0}_values COMMAND OPTION: offers arguments of an option, or with '' arguments that belong to none. Fails if\n"
      "# there is no argument.\n"
      "{0}_values() {{\n  case $1:$2 in\n{3}    *) return 1 ;;\n  esac\n}}\n",
      function, names, branches, value_branches(commands, values, function));
}

}  // namespace rtev::completions
