// SPDX-License-Identifier: MIT
#include "man/options_to_scdoc.hpp"

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>
#include <vector>

#include "base/help_formatter.hpp"
#include "rtev/version.hpp"

namespace rtev::man {
namespace {

/// Plain text for scdoc, also at the beginning of a line, where it has more special characters.
std::string escaped(std::string_view text) {
  constexpr std::string_view special = "\\*_`", special_at_begin = "-.#|[]:~@";
  std::string out;
  for (const char c : text) {
    if (special.contains(c) || (out.empty() && special_at_begin.contains(c))) out += '\\';
    out += c;
  }
  return out;
}

std::string sentence(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text + '.';
}

std::string bold(const std::string& text) {
  return '*' + escaped(text) + '*';
}

/// Lines that begin with a blank are kept as they are.
std::string paragraphs(std::string_view text) {
  std::string out;
  bool is_literal = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with(' ') != is_literal) {
      out += is_literal ? "```\n" : "\n```\n";
      is_literal = !is_literal;
    }
    out += (is_literal ? std::string(line) : escaped(line)) + "\n";
  }
  return out + (is_literal ? "```\n\n" : "\n");
}

/// The names in bold, and below them the indented help.
std::string option_entry(const CLI::Option& option) {
  const std::string help = sentence(option.get_description());
  std::string lines;
  for (std::string_view rest = help; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    lines += escaped(line) + (rest.empty() ? "\n" : "++\n");  // a line after "++" must not be indented
  }
  return bold(option_heading(option)) + "\n\t" + lines + "\n";
}

bool has_same(const CLI::App& program, const CLI::Option& option) {
  if (option.get_positional()) return false;
  const CLI::Option* const other = program.get_option_no_throw(option.get_name());
  return other != nullptr && option_heading(*other) == option_heading(option) &&
         other->get_description() == option.get_description();
}

std::string options_section(const CLI::App& program) {
  std::string out;
  for (const CLI::Option* option : program.get_options()) out += option_entry(*option);
  return out;
}

std::string command_section(const CLI::App& program, const CLI::App& command) {
  const auto formatter = std::dynamic_pointer_cast<CLI::Formatter>(command.get_formatter());
  std::string usage = formatter->make_usage(&command, program.get_name() + " " + command.get_name());
  usage.erase(0, usage.find(' ') + 1);
  usage.erase(usage.find_last_not_of('\n') + 1);
  std::string out = "## " + escaped(command.get_name()) + "\n\n" + bold(usage) + "\n\n";
  out += escaped(sentence(command.get_description())) + "\n\n" + paragraphs(command.get_footer());
  std::string same;
  for (const CLI::Option* option : command.get_options()) {
    if (has_same(program, *option))
      same += (same.empty() ? "" : ", ") + bold(option->get_name());
    else
      out += option_entry(*option);
  }
  return out + "Options described in OPTIONS: " + same + ".\n\n";
}

std::unexpected<Error> template_error(std::string why) {
  return std::unexpected(Error{.what = "cannot make the manual page", .why = std::move(why)});
}

}  // namespace

Result<std::string> fill_template(std::string_view text, const CLI::App& program) {
  constexpr std::string_view command_directive = "@command ", version = "@VERSION@";
  std::set<std::string> missing;
  for (const CLI::App* command : program.get_subcommands({})) missing.insert(command->get_name());
  std::string out;
  while (!text.empty()) {
    std::string line(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (const auto at = line.find(version); at != std::string::npos) line.replace(at, version.size(), RTEV_VERSION);
    if (line == "@options@") {
      out += options_section(program);
    } else if (line.starts_with(command_directive) && line.ends_with('@')) {
      const std::string name = line.substr(command_directive.size(), line.size() - command_directive.size() - 1);
      if (missing.erase(name) == 0) return template_error("no subcommand, or described twice: " + name);
      out += command_section(program, *program.get_subcommand(name));
    } else if (line.starts_with('@')) {
      return template_error("unknown directive: " + line);
    } else {
      out += line + '\n';
    }
  }
  if (!missing.empty()) return template_error("not described: " + *missing.begin());
  return out;
}

}  // namespace rtev::man
