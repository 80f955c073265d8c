// SPDX-License-Identifier: MIT
// The format of --help of rtev-bpf and rtev-load.
#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>

namespace rtev {

/// "-p, --pid PID" or, for a positional argument, its name.
std::string option_heading(const CLI::Option& option);

/// Help with subcommands before options and lines of at most max_columns. Texts are paragraphs of any length; a line
/// that begins with a blank (an example) is kept as it is.
class HelpFormatter final : public CLI::Formatter {
 public:
  /// The usage of this app ends with "[-- CMD ARG...]", which CLI11 does not parse.
  void allow_command(const CLI::App& app) { with_command_.insert(&app); }

  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

 private:
  std::set<const CLI::App*> with_command_;
};

}  // namespace rtev
