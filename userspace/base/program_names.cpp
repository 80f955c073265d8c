// SPDX-License-Identifier: MIT
#include "base/program_names.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/parse.hpp"

namespace rtev {
namespace {

constexpr std::size_t max_comm = 15;

/// What the kernel appends to the path of a file that was removed or replaced.
constexpr std::string_view deleted = " (deleted)";

/// The last part of a path, which is shortened by it; nothing if there is none left.
std::optional<std::string_view> take_last(std::string_view& path) {
  if (path.empty()) return std::nullopt;
  const std::size_t slash = path.rfind('/');
  const std::string_view last = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
  path = path.substr(0, slash == std::string_view::npos ? 0 : slash);
  return last;
}

/// Of the arguments of an interpreter.
std::string bytecode_of(std::string_view arguments) {
  const std::string_view first = take_until(arguments, '\0');
  // A launcher runs the interpreter under the name of the bytecode.
  if (!is_bytecode_interpreter(first)) return std::string(first);
  while (!arguments.empty()) {
    const std::string_view argument = take_until(arguments, '\0');
    if (!argument.starts_with('-')) return std::string(argument);
    if (argument == "-I") take_until(arguments, '\0');
  }
  return {};
}

/// Of the arguments of a dynamic loader those of the program that it runs. Empty where they have an option that is not
/// known: the next one may be its value.
std::string_view without_loader(std::string_view arguments) {
  constexpr std::array<std::string_view, 7> with_value{
      "--library-path",         "--preload",          "--audit", "--argv0", "--inhibit-rpath",
      "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask"};
  take_until(arguments, '\0');
  while (arguments.starts_with("--")) {
    const std::string_view option = take_until(arguments, '\0');
    if (option == "--") break;
    if (std::ranges::find(with_value, option) != with_value.end()) {
      take_until(arguments, '\0');
    } else if (option != "--inhibit-cache" && !option.contains('=')) {
      return {};
    }
  }
  return arguments;
}

}  // namespace

std::string_view file_name_of(std::string_view path) {
  if (path.ends_with(deleted)) path.remove_suffix(deleted.size());
  return path.substr(path.rfind('/') + 1);
}

bool is_bytecode_interpreter(std::string_view exe) {
  const std::string_view name = file_name_of(exe);
  return name.starts_with("ocamlrun") || name.contains("-ocamlrun");
}

bool is_loader_path(std::string_view path) {
  const std::string_view name = file_name_of(path);
  return (name.starts_with("ld-") || name.starts_with("ld.")) && (name.ends_with(".so") || name.contains(".so."));
}

std::string script_of(std::string_view exe, std::string_view arguments) {
  if (is_loader_path(exe)) {
    arguments = without_loader(arguments);
    std::string_view rest = arguments;
    const std::string_view program = take_until(rest, '\0');
    return is_bytecode_interpreter(program) ? bytecode_of(arguments) : std::string(program);
  }
  return is_bytecode_interpreter(exe) ? bytecode_of(arguments) : std::string();
}

std::string_view full_name(const ProgramNames& names) {
  const std::string_view file = file_name_of(names.exe), script = file_name_of(names.script);
  if (!script.empty() && (file.starts_with(names.comm) || script.starts_with(names.comm))) return script;
  const bool is_cut = names.comm.size() == max_comm && file.starts_with(names.comm);
  return is_cut || names.comm.empty() ? file : names.comm;
}

std::string_view path_of(const ProgramNames& names) {
  std::string_view path = names.script.empty() ? names.exe : names.script;
  if (path.ends_with(deleted)) path.remove_suffix(deleted.size());
  return path;
}

std::string distinct_name(std::string_view name, std::string_view path, const std::vector<std::string>& others) {
  std::string distinct(name);
  std::vector<std::string_view> alike(others.begin(), others.end());
  for (bool is_file = true; !alike.empty(); is_file = false) {
    const auto part = take_last(path);
    if (!part) break;
    const std::size_t before = alike.size();
    std::erase_if(alike, [&](std::string_view& other) { return take_last(other) != part; });
    if (alike.size() < before && !(is_file && *part == name)) distinct = std::string(*part) + '/' + distinct;
  }
  return distinct;
}

}  // namespace rtev
