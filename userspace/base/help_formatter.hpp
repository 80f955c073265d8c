// SPDX-License-Identifier: MIT
// The format of --help of rtev-bpf and rtev-load, and what help, manual and completions need to know besides CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rtev {

/// What completions offer for the argument of an option or for a positional argument. Help shows its type name.
struct ArgumentValues {
  std::vector<std::string> words{};     ///< all there are, or the usual ones
  bool is_list = false;                 ///< several words, separated by commas
  std::vector<std::string> suffixes{};  ///< of files; none of them, and nothing else here: nothing is known
  bool directories = false;
  bool pids = false;           ///< of OCaml processes
  bool process_names = false;  ///< the same by name
};

/// "-p, --pid PID" or, for a positional argument, its name.
std::string option_heading(const CLI::Option& option);

/// Help with subcommands before options and lines of at most max_columns. Texts are paragraphs of any length; a line
/// that begins with a blank (an example) is kept as it is. Where there are more than a few rare options, they and what
/// the footer says before its examples are shown by --help-all only.
class HelpFormatter final : public CLI::Formatter {
 public:
  /// The usage of this app ends with "[-- CMD ARG...]", which CLI11 does not parse.
  void allow_command(const CLI::App& app) { with_command_.insert(&app); }

  /// The long names of options, without "--", that --help does not show.
  void set_rare(std::set<std::string> names) { rare_ = std::move(names); }

  /// For an app with many options: those that its --help shows, in one section. All others are rare.
  void set_common(const CLI::App& app, std::set<std::string> names) { common_[&app] = std::move(names); }

  /// What may be given for an option. An option without it takes any text.
  void set_values(const CLI::Option& option, ArgumentValues values) { values_[&option] = std::move(values); }
  const ArgumentValues& values_of(const CLI::Option& option) const;
  bool allows_command(const CLI::App& app) const { return with_command_.contains(&app); }

  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

 private:
  bool is_rare(const CLI::App& app, const CLI::Option& option) const;
  std::string options_of(const CLI::App& app, const std::string& group, bool positional, bool with_rare) const;

  std::set<const CLI::App*> with_command_;
  std::set<std::string> rare_;
  std::map<const CLI::App*, std::set<std::string>> common_;
  std::map<const CLI::Option*, ArgumentValues> values_;
};

/// The formatter of an app and its subcommands; null if they have another one.
std::shared_ptr<HelpFormatter> help_formatter_of(const CLI::App& app);
/// Sets the values of an option of `app`, which has no effect without a HelpFormatter.
void set_values(const CLI::App& app, const CLI::Option& option, ArgumentValues values);

}  // namespace rtev
