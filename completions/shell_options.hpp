// SPDX-License-Identifier: MIT
// Completions of shells are templates, whose line "@options@" is replaced by the options of a program.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/help_formatter.hpp"
#include "rtev/error.hpp"

namespace rtev::completions {

enum class Shell : std::uint8_t { bash, zsh, fish };

/// Replaces the line "@options@", and "@PROGRAM@" and "@FUNCTION@" (its name, as a part of names of functions)
/// anywhere. Fails if the program has another formatter than HelpFormatter, which knows the values of options.
Result<std::string> fill_completion(std::string_view text, const CLI::App& program, Shell shell);

/// A subcommand, or the program without one.
struct Command {
  std::string name{};  ///< empty: the program
  std::string description{};
  std::vector<const CLI::Option*> options{};  ///< without positional arguments
  const CLI::Option* positional = nullptr;    ///< the argument that is no option's
  bool starts_program = false;                ///< "-- CMD ARG..." may follow
};

/// The names as they are typed: "-o", "--output".
std::vector<std::string> names_of(const CLI::Option& option);
/// What help says, as far as it fits in a line of a menu.
std::string short_description(const CLI::Option& option);
bool takes_argument(const CLI::Option& option);
bool is_argument_optional(const CLI::Option& option);
bool is_repeatable(const CLI::Option& option);

using Commands = std::vector<Command>;
/// What replaces "@options@". `function`: the beginning of the names of functions.
std::string bash_options(const Commands& commands, const HelpFormatter& values, const std::string& function);
std::string zsh_options(const Commands& commands, const HelpFormatter& values, const std::string& function);
std::string fish_options(const Commands& commands, const HelpFormatter& values, const std::string& function);

}  // namespace rtev::completions
