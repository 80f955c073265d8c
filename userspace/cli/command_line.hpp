// SPDX-License-Identifier: MIT
// The command line of rtev-bpf: all subcommands, and what is an error among them.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/subcommands.hpp"

namespace rtev::cli {

class CommandLine {
 public:
  CommandLine();
  ~CommandLine();

  /// What the arguments, the first of which is the program's name, ask to run; its result is the exit status.
  /// The error is an exit status, too: help, the version or the usage error is already printed.
  std::expected<std::function<int()>, int> parse(std::vector<std::string> arguments);

  /// With all subcommands, for the generators of manual pages and completions.
  const CLI::App& app() const { return *app_; }

 private:
  /// The live stream if there is none.
  const Subcommand& given_subcommand() const;
  const Subcommand& parse_or_throw(const Invocation& invocation, std::vector<std::string> arguments,
                                   bool has_separator);

  std::unique_ptr<CLI::App> app_;
  std::vector<Subcommand> subcommands_;  ///< the last is the live stream, that of app_ itself
};

}  // namespace rtev::cli
