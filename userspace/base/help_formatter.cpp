// SPDX-License-Identifier: MIT
#include "base/help_formatter.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/folding.hpp"
#include "base/utf8.hpp"
#include "base/with_and.hpp"

namespace rtev {
namespace {

constexpr std::ptrdiff_t few = 3;        ///< options are shown even if they are rare
constexpr std::size_t text_column = 34;  ///< where descriptions of options and subcommands begin

/// Removes the first line from the text and returns it.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.starts_with(' '))
      out += line;
    else
      out += folded(line, 0, 0);
    out += '\n';
  }
  return out;
}

std::string entry(const std::string& heading, const std::string& text) {
  std::string out = "  " + heading;
  std::size_t column = columns_of(out);
  if (column + 2 > text_column) {
    out += '\n';
    column = 0;
  }
  out += std::string(text_column - column, ' ');
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = take_line(rest);
    out += folded(line, text_column, text_column);
    out += '\n';
    if (!rest.empty()) out += std::string(text_column, ' ');
  }
  return out;
}

/// `is_short`: without the lines that explain each value.
std::string option_entry(const CLI::Option& option, bool is_short) {
  std::string heading = option_heading(option);
  if (heading.starts_with("--")) heading.insert(0, "    ");  // below the long names of options that have a short one
  const bool is_required = option.get_required() && !option.get_positional();
  std::string text = option.get_description();
  if (is_short) text = text.substr(0, text.find('\n'));
  return entry(heading, text + (is_required ? " (required)" : ""));
}

/// From "Examples:" on, if there are any.
std::string_view examples_of(std::string_view footer) {
  const std::size_t begin = footer.find("Examples:\n");
  return begin != std::string_view::npos ? footer.substr(begin) : footer;
}

}  // namespace

std::string option_heading(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true, false);
  std::string heading;
  for (const std::string& name : option.get_snames()) heading += (heading.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) heading += (heading.empty() ? "--" : ", --") + name;
  if (option.get_type_size() != 0) heading += " " + option.get_type_name();
  return heading;
}

std::shared_ptr<HelpFormatter> help_formatter_of(const CLI::App& app) {
  return std::dynamic_pointer_cast<HelpFormatter>(app.get_formatter());
}

void set_values(const CLI::App& app, const CLI::Option& option, ArgumentValues values) {
  if (const auto formatter = help_formatter_of(app)) formatter->set_values(option, std::move(values));
}

const ArgumentValues& HelpFormatter::values_of(const CLI::Option& option) const {
  static const ArgumentValues any;
  const auto found = values_.find(&option);
  return found != values_.end() ? found->second : any;
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  std::string usage = "Usage: " + name;
  for (const CLI::Option* option : app->get_options())
    if (option->get_positional()) usage += " " + option->get_name(true, false);
  for (const CLI::Option* option : app->get_options())
    if (option->get_required() && !option->get_positional())
      usage += " -" + option->get_snames().front() + " " + option->get_type_name();
  usage += " [OPTIONS]";
  if (with_command_.contains(app)) usage += " [-- CMD ARG...]";
  if (!app->get_subcommands({}).empty()) usage += "\n       " + name + " SUBCOMMAND [OPTIONS] ...";
  return usage + "\n";
}

bool HelpFormatter::is_rare(const CLI::App& app, const CLI::Option& option) const {
  const auto common = common_.find(&app);
  const auto has = [&option](const std::set<std::string>& names) {
    return std::ranges::any_of(option.get_lnames(), [&](const std::string& name) { return names.contains(name); });
  };
  return common != common_.end() ? !has(common->second) : has(rare_);
}

std::string HelpFormatter::options_of(const CLI::App& app, const std::string& group, bool positional,
                                      bool with_rare) const {
  std::string out;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() != positional || option->get_group() != group) continue;
    if (with_rare || !is_rare(app, *option)) out += option_entry(*option, !with_rare);
  }
  return out;
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  const auto options = app->get_options();
  const auto rare = std::ranges::count_if(options, [&](const CLI::Option* option) { return is_rare(*app, *option); });
  const bool is_short = mode != CLI::AppFormatMode::All && rare > few;
  std::string description = app->get_description();
  if (app->get_parent() != nullptr)
    description = capitalized(description) + '.';  // written for the list of subcommands
  std::string out = paragraphs(description) + "\n" + make_usage(app, name);
  const auto add_section = [&](const std::string& title, const std::string& entries) {
    if (!entries.empty()) out += "\n" + title + ":\n" + entries;
  };
  std::string subcommands;
  for (const CLI::App* subcommand : app->get_subcommands({}))
    subcommands += entry(subcommand->get_name(), subcommand->get_description());
  add_section("Subcommands", subcommands);
  const std::vector<std::string> groups = app->get_groups();
  for (const std::string& group : groups) add_section("Arguments", options_of(*app, group, true, true));
  std::string common;
  for (const std::string& group : groups) {
    const std::string entries = options_of(*app, group, false, !is_short);
    if (is_short && common_.contains(app))
      common += entries;
    else
      add_section(group, entries);
  }
  add_section("Options", common);
  if (is_short) out += "\n" + std::to_string(rare) + " more options: " + name + " --help-all\n";
  const std::string footer = app->get_footer();
  if (!footer.empty()) out += "\n" + paragraphs(is_short ? examples_of(footer) : footer);
  return out;
}

}  // namespace rtev
