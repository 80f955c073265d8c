// SPDX-License-Identifier: MIT
#include "cli/command_line.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "base/help_formatter.hpp"
#include "base/parse.hpp"
#include "cli/foreign_words.hpp"
#include "cli/messages.hpp"
#include "cli/output_file.hpp"
#include "cli/output_name.hpp"
#include "cli/suggestion.hpp"
#include "cli/tracing.hpp"
#include "rtev/version.hpp"
#include "session/command/sudo_user.hpp"

namespace rtev::cli {
namespace {

using Strings = std::vector<std::string>;

constexpr const char* description =
    "Traces all OCaml 5 processes of this host: what their runtime does (GC phases, counters, user events) and what "
    "the kernel's scheduler does to their threads, merged into one time-ordered stream. Without a subcommand rtev-bpf "
    "shows this stream live.";

/// Removes "-- CMD ARG..." from the arguments: CLI11 must not see the options of CMD.
std::vector<std::string> take_command(std::vector<std::string>& arguments) {
  const auto separator = std::ranges::find(arguments, "--");
  if (separator == arguments.end()) return {};
  std::vector<std::string> command(separator + 1, arguments.end());
  arguments.erase(separator, arguments.end());
  return command;
}

/// Throws if there is no such subcommand. Options are parsed later.
void check_subcommand(const CLI::App& app, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::App* const subcommand : app.get_subcommands({})) names.push_back(subcommand->get_name());
  if (name.starts_with('-') || std::ranges::find(names, name) != names.end()) return;
  const auto similar = similar_word(name, names);
  throw CLI::ParseError(fmt::format("no subcommand is called '{}'\nhint: {}", escaped(name),
                                    similar ? "did you mean " + *similar + "?" : "rtev-bpf --help lists subcommands"),
                        CLI::ExitCodes::ExtrasError);
}

/// "help CMD" is "CMD --help", as in git and perf.
void expand_help(const CLI::App& app, std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "help") return;
  arguments.erase(arguments.begin());
  if (!arguments.empty()) check_subcommand(app, arguments.front());
  arguments.emplace_back("--help");
}

/// Subcommands, and options of the subcommand that was given.
std::vector<std::string> known_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* const subcommand : app.get_subcommands({})) words.push_back(subcommand->get_name());
  const auto parsed = app.get_subcommands();
  for (const CLI::Option* const option : (parsed.empty() ? app : *parsed.front()).get_options())
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  return words;
}

/// "rtev-bpf" or "rtev-bpf record": how the command line begins.
std::string command_name(const Subcommand& subcommand) {
  const bool is_root = subcommand.app->get_parent() == nullptr;
  return is_root ? "rtev-bpf" : "rtev-bpf " + subcommand.app->get_name();
}

/// True if the command has the option, or the argument of this name.
bool has(const Subcommand& subcommand, const std::string& option) {
  return subcommand.app->get_option_no_throw(option) != nullptr;
}

/// The same, and it was given.
bool has_value(const Subcommand& subcommand, const std::string& option) {
  return has(subcommand, option) && subcommand.app->get_option_no_throw(option)->count() > 0;
}

bool is_name_of_output(std::string_view argument) {
  const auto suffixes = stream_suffixes();
  return argument.ends_with(".html") ||
         std::ranges::any_of(suffixes, [&](const std::string& suffix) { return argument.ends_with(suffix); });
}

/// The command line for people who write the name of a program, a file or a process where an option is needed.
std::optional<std::string> meant_command(const Subcommand& subcommand, const std::string& argument) {
  if (argument.starts_with('-')) return std::nullopt;
  const auto with = [&](const std::string& more) { return command_name(subcommand) + more + escaped(argument); };
  if (has(subcommand, "--pid") && parse_number<std::int32_t>(argument).value_or(0) > 0) return with(" -p ");
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(argument, ignored);
  const bool is_program = is_file ? ::access(argument.c_str(), X_OK) == 0 : argument.contains('/');
  const bool is_input = argument.ends_with(".fxt") || argument.ends_with(".events") || (is_file && !is_program);
  if (is_input && has_value(subcommand, "A")) return command_name(subcommand) + " A.fxt B.fxt compares two";
  const bool is_read = has_value(subcommand, "INPUT") || has_value(subcommand, "--input");
  if (is_input && is_read) return command_name(subcommand) + " reads one file at a time; rtev-bpf diff compares two";
  const bool is_output = has(subcommand, "--output") && !has_value(subcommand, "--output");
  if (is_output && (is_read || !has(subcommand, "--input")) && is_name_of_output(argument) &&
      subcommand.app->get_parent() != nullptr)
    return with(" -o ");
  if (is_input && has(subcommand, "--input")) return with(" -i ");
  if (is_input && subcommand.app->get_parent() == nullptr) return with(" dump ");
  if (is_program && !is_input && subcommand.takes_command) return with(" -- ");
  return std::nullopt;
}

std::optional<std::string> foreign_hint(const Subcommand& subcommand, std::string_view word) {
  return hint_for_foreign_word(word, command_name(subcommand),
                               [&](const std::string& option) { return has(subcommand, option); });
}

/// "s" of "sec", "seconds"; of a unit itself; empty for other words.
std::string_view time_unit(std::string_view word) {
  static constexpr std::array<std::array<std::string_view, 6>, 6> units{{
      {"ns", "nsec", "nsecs", "nanosecond", "nanoseconds"},
      {"us", "usec", "usecs", "microsecond", "microseconds"},
      {"ms", "msec", "msecs", "millis", "millisecond", "milliseconds"},
      {"s", "sec", "secs", "second", "seconds"},
      {"m", "min", "mins", "minute", "minutes"},
      {"h", "hr", "hrs", "hour", "hours"},
  }};
  if (word.empty()) return {};
  const auto found =
      std::ranges::find_if(units, [word](const auto& words) { return std::ranges::find(words, word) != words.end(); });
  return found == units.end() ? std::string_view() : found->front();
}

/// "5s" of "5sec".
std::optional<std::string> meant_time(std::string_view text) {
  const std::size_t unit = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view known = time_unit(text.substr(unit));
  std::string time = std::string(text.substr(0, unit)) + std::string(known);
  return !known.empty() && parse_duration(time) ? std::optional(std::move(time)) : std::nullopt;
}

/// "5ms" of "-d 5 ms".
std::optional<std::string> joined_time(const Strings& arguments, Strings::const_iterator unit) {
  if (unit == arguments.end() || unit == arguments.begin()) return std::nullopt;
  const std::string& number = *std::prev(unit);
  return meant_time(number.substr(number.rfind('=') + 1) + *unit);
}

std::string unexpected_argument(const Subcommand& subcommand, const CLI::App& root, const std::string& argument,
                                const Strings& arguments) {
  const std::string text = "unexpected argument '" + escaped(argument) + "'\nhint: ";
  if (const auto time = joined_time(arguments, std::ranges::find(arguments, argument)))
    return text + "write a time without a blank: " + *time;
  if (const auto command = meant_command(subcommand, argument)) return text + *command;
  if (const auto hint = foreign_hint(subcommand, argument)) return text + *hint;
  // A letter is not similar to anything.
  const std::string written = argument.substr(0, argument.find('='));
  if (const auto word = written.size() > 2 ? similar_word(written, known_words(root)) : std::nullopt)
    return text + "did you mean " + *word + "?";
  const bool is_root = subcommand.app == &root;
  return fmt::format("{}{} --help lists {}options{}", text, command_name(subcommand), is_root ? "subcommands and " : "",
                     subcommand.takes_command ? "; to start a program, write -- before it" : "");
}

/// What those meant who left out a positional argument: "diff a.fxt", "dump -p 1".
std::optional<std::string> missing_hint(const Subcommand& subcommand, const CLI::App& root, const std::string& text) {
  for (const std::string& argument : root.remaining(true))
    if (auto hint = foreign_hint(subcommand, argument)) return hint;
  const std::string name = subcommand.app->get_name();
  if (const auto rest = root.remaining(true); name == "convert" && !rest.empty() && has_value(subcommand, "INPUT"))
    return fmt::format("rtev-bpf convert {} -o {}", escaped(subcommand.app->get_option("INPUT")->results().front()),
                       escaped(rest.front()));
  if (name == "diff") return "rtev-bpf diff BEFORE.fxt AFTER.fxt; of one recording: rtev-bpf stats -i FILE.fxt";
  if (text.starts_with("INPUT") && has_value(subcommand, "--pid"))
    return fmt::format("rtev-bpf {} {}", name, escaped(subcommand.app->get_option("--pid")->results().front()));
  return std::nullopt;
}

/// "-p 1 -p 2" for "1,2"; "--name 'a' --name 'b'" for "a,b", if the command selects by name. Empty for other text.
std::string meant_selection(const Subcommand& subcommand, std::string_view value) {
  std::string ids, names;
  bool are_ids = true;
  while (!value.empty()) {
    const std::string_view one = take_until(value, ',');
    if (one.empty()) continue;
    are_ids &= parse_number<std::int32_t>(one).value_or(0) > 0;
    ids += fmt::format(" -p {}", one);
    names += fmt::format(" --name '{}'", one);
  }
  if (are_ids) return ids;
  return has(subcommand, "--name") ? names : "";
}

/// What those meant whose value was refused: "--pid: 'main.exe' is not a process id".
std::optional<std::string> value_hint(const Subcommand& subcommand, std::string_view text) {
  if (text.starts_with("--input:"))
    return command_name(subcommand) + " -i FILE.fxt, or without -i to trace what runs now";
  const std::size_t begin = text.find('\'') + 1, end = text.find('\'', begin);
  if (begin == 0 || end == std::string_view::npos) return std::nullopt;
  const std::string_view value = text.substr(begin, end - begin);
  const std::string command = command_name(subcommand);
  if (text.starts_with("--duration:")) {
    const auto time = meant_time(value);
    return time ? std::optional(fmt::format("{} -d {}", command, *time)) : std::nullopt;
  }
  if (text.starts_with("--to:") && command == "rtev-bpf convert")
    return command + " FILE -o OTHER: the suffix of OTHER says the format, or -f does; --to is a time";
  // As strace -f.
  const bool is_no_word = value.starts_with('-') || value.contains('/');
  if (text.starts_with("--format:")) return foreign_hint(subcommand, is_no_word ? "-ff" : value);
  const bool is_number = parse_leading_number<std::int64_t>(value).has_value();
  if (text.starts_with("--frames:") && !is_number)
    return fmt::format("{} --name '{}' selects by name, -b -n N ends after N intervals", command, value);
  if (!text.starts_with("--pid:") || (is_number && !value.contains(','))) return std::nullopt;
  const std::string selection = meant_selection(subcommand, value);
  return selection.empty() ? std::nullopt : std::optional(command + selection);
}

/// In plainer words than those of CLI11, which lists unexpected arguments from the last to the first.
std::string explain(const Subcommand& subcommand, const CLI::App& root, const CLI::ParseError& error,
                    const Invocation& invocation) {
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    std::string text = error.what();
    constexpr std::string_view excludes = " excludes ";
    if (const std::size_t at = text.find(excludes); at != std::string::npos)
      text.replace(at, excludes.size(), " cannot be used with ");
    return text;
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) {
    std::string text = error.what();
    if (text.contains("hint:")) return text;
    const auto hint = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr ? missing_hint(subcommand, root, text)
                                                                                 : value_hint(subcommand, text);
    return hint ? text + "\nhint: " + *hint : text;
  }
  const auto unexpected = root.remaining(true);
  const auto first = std::ranges::find_first_of(invocation.arguments, unexpected);
  return unexpected_argument(subcommand, root, first != invocation.arguments.end() ? *first : unexpected.front(),
                             invocation.arguments);
}

/// `subcommand`: which was given.
int usage_error(const Subcommand& subcommand, const CLI::App& root, const CLI::ParseError& error,
                const Invocation& invocation) {
  if (error.get_exit_code() == 0) return finish_stdout(root.exit(error));  // --help and --version
  const std::string text = explain(subcommand, root, error, invocation);
  const std::string hint = text.contains("hint:") ? "" : "hint: " + command_name(subcommand) + " --help\n";
  say(fmt::format("rtev-bpf: {}\n{}", text, hint));
  return exit_usage;
}

/// CLI11 would take options before a subcommand for those of the live stream, where they have no effect.
void refuse_options_before(const CLI::App& root, const std::string& subcommand) {
  for (const CLI::Option* option : root.get_options()) {
    if (option->count() == 0) continue;
    throw CLI::ParseError(fmt::format("{} must follow {}\nhint: options of {} follow it: rtev-bpf {} --help",
                                      option->get_name(), subcommand, subcommand, subcommand),
                          CLI::ExitCodes::ExtrasError);
  }
}

void check_command(const Subcommand& subcommand) {
  const auto refuse = [](const std::string& what) { throw CLI::ParseError(what, CLI::ExitCodes::ExcludesError); };
  if (!subcommand.takes_command) refuse(subcommand.app->get_name() + " cannot start a program: unexpected --");
  const CLI::Option* const input = subcommand.app->get_option_no_throw("--input");
  if (input != nullptr && input->count() > 0) refuse("--input cannot be used with a program to start (--)");
}

}  // namespace

CommandLine::CommandLine() : app_(std::make_unique<CLI::App>(description, "rtev-bpf")) {
  const auto formatter = std::make_shared<HelpFormatter>();
  formatter->set_common(*app_, {"pid", "name", "duration", "output", "format", "events", "sched", "enable"});
  formatter->set_rare({"allow-confined", "allow-readable", "buffer", "color", "domain", "enable-rate", "history",
                       "leave-on", "max-files", "max-size", "memory-limit", "min-free", "ocaml-version", "priority",
                       "ringless", "ringless-limit", "save-rings", "tid", "verbose"});
  app_->formatter(formatter);
  app_->set_help_flag("-h,--help", "print this help");
  app_->set_help_all_flag("--help-all", "print help with all options");
  app_->set_version_flag("--version", std::string("rtev-bpf ") + RTEV_VERSION, "print the version");
  app_->require_subcommand(0, 1);
  // In the order of the help. Last app_ itself, because subcommands would inherit its footer.
  for (const auto& add :
       {add_ps_command,      add_top_command,     add_summary_command, add_report_command, add_record_command,
        add_snap_command,    add_pauses_command,  add_latency_command, add_stalls_command, add_tasks_command,
        add_stats_command,   add_profile_command, add_allocs_command,  add_diff_command,   add_dump_command,
        add_convert_command, add_enable_command,  add_disable_command, add_agent_command,  add_doctor_command,
        add_live_command}) {
    subcommands_.push_back(add(*app_));
    if (subcommands_.back().takes_command) formatter->allow_command(*subcommands_.back().app);
  }
}

CommandLine::~CommandLine() = default;

const Subcommand& CommandLine::given_subcommand() const {
  const auto parsed = std::ranges::find_if(subcommands_, [&](const Subcommand& subcommand) {
    return subcommand.app != app_.get() && subcommand.app->parsed();
  });
  return parsed != subcommands_.end() ? *parsed : subcommands_.back();
}

const Subcommand& CommandLine::parse_or_throw(const Invocation& invocation, std::vector<std::string> arguments,
                                              bool has_separator) {
  std::ranges::reverse(arguments);  // CLI11 takes a vector from its end
  app_->parse(arguments);
  const Subcommand& subcommand = given_subcommand();
  if (subcommand.app != app_.get()) refuse_options_before(*app_, subcommand.app->get_name());
  if (has_separator && invocation.command.empty())
    throw CLI::ParseError("no program to start after --", CLI::ExitCodes::RequiredError);
  if (has_separator) check_command(subcommand);
  return subcommand;
}

std::expected<std::function<int()>, int> CommandLine::parse(std::vector<std::string> arguments) {
  Invocation invocation{.arguments = arguments, .command = {}};
  arguments.erase(arguments.begin());
  try {
    expand_help(*app_, arguments);
    const bool has_separator = std::ranges::find(arguments, "--") != arguments.end();
    invocation.command = take_command(arguments);
    const Subcommand& subcommand = parse_or_throw(invocation, std::move(arguments), has_separator);
    const CLI::Option* const input = subcommand.app->get_option_no_throw("--input");
    const bool traces = subcommand.takes_command && (input == nullptr || input->count() == 0);
    return [run = subcommand.run, invocation = std::move(invocation), traces] {
      if (traces)
        catch_signals();
      else
        remove_output_on_signal();
      if (auto good = check_sudo_environment(); !good) return report(good.error());
      return run(invocation);
    };
  } catch (const CLI::ParseError& error) {
    return std::unexpected(usage_error(given_subcommand(), *app_, error, invocation));
  }
}

}  // namespace rtev::cli
