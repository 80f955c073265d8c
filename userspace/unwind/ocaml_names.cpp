// SPDX-License-Identifier: MIT
#include "unwind/ocaml_names.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace rtev {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_word(char c) {
  return is_digit(c) || is_upper(c) || (c >= 'a' && c <= 'z') || c == '_' || c == '\'';
}

std::optional<unsigned> hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return std::nullopt;
}

/// Undoes "$xx", which stands for characters that assemblers do not take.
std::string decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$' && i + 2 < text.size()) {
      const auto high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (high && low) {
        out.push_back(static_cast<char>(16 * *high + *low));
        i += 2;
        continue;
      }
    }
    out.push_back(text[i]);
  }
  return out;
}

/// Path of a module: "Web.Server" of "Web__Server". Dune puts programs into a module of its own, which no source has.
std::string module_path(std::string_view name) {
  constexpr std::string_view program = "Dune__exe__";
  if (name.starts_with(program) && name.size() > program.size()) name.remove_prefix(program.size());
  std::string out;
  out.reserve(name.size());
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool separates = name.substr(i).starts_with("__") && i != 0 && i + 2 < name.size() && name[i + 2] != '_';
    out.push_back(separates ? '.' : name[i]);
    if (separates) ++i;
  }
  return out;
}

/// Without the number that makes the name of a function unique.
std::string_view without_stamp(std::string_view name) {
  std::size_t end = name.size();
  while (end > 0 && is_digit(name[end - 1])) --end;
  const bool has_stamp = end < name.size() && end > 1 && name[end - 1] == '_';
  return has_stamp ? name.substr(0, end - 1) : name;
}

/// ">>=", "let*", "and+"; not "let_x".
bool is_operator(std::string_view name) {
  const std::size_t word = name.starts_with("let") || name.starts_with("and") ? 3 : 0;
  return name.size() > word && std::ranges::none_of(name.substr(word), is_word);
}

/// A function as it is called in the source: "(fun)", "(>>=)", "map". Empty for the code of a whole module.
std::string function_name(std::string_view name) {
  name = without_stamp(name);
  if (name == "entry") return {};
  if (name == "fun" || name.starts_with("anon_fn[")) return "(fun)";
  return is_operator(name) ? "(" + std::string(name) + ")" : std::string(name);
}

std::string_view without_compiler_suffix(std::string_view symbol) {
  constexpr std::array<std::string_view, 6> suffixes{".cold",  ".constprop.", ".isra.",
                                                     ".part.", ".lto_priv.",  ".llvm."};
  for (const std::string_view suffix : suffixes)
    if (const std::size_t at = symbol.find(suffix); at != 0) symbol = symbol.substr(0, at);
  return symbol;
}

}  // namespace

bool is_ocaml_symbol(std::string_view symbol) {
  return symbol.size() > 4 && symbol.starts_with("caml") && is_upper(symbol[4]);
}

std::string readable_symbol(std::string_view symbol) {
  if (!is_ocaml_symbol(symbol)) return std::string(without_compiler_suffix(symbol));
  symbol.remove_prefix(4);
  // OCaml 5.0 has "__" here, too: the last one that something follows.
  std::size_t separator = symbol.find('.'), length = 1;
  if (separator == std::string_view::npos) {
    separator = symbol.rfind("__");
    length = 2;
    while (separator != std::string_view::npos && separator > 0 && symbol[separator - 1] == '_') --separator;
  }
  if (separator == std::string_view::npos) return module_path(decoded(symbol));
  const std::string module = module_path(decoded(symbol.substr(0, separator)));
  const std::string function = function_name(decoded(symbol.substr(separator + length)));
  return function.empty() ? module : module + "." + function;
}

std::string readable_definition(std::string_view name) {
  const std::size_t end = std::min(name.find('.'), name.size());
  std::string readable = module_path(name.substr(0, end)) + std::string(name.substr(end));
  // The compiler puts only those between parentheses that begin with another character.
  const std::size_t last = readable.rfind('.') + 1;
  const std::string function = readable.substr(last);
  if (last != 0 && !function.empty() && is_word(function.front()) && is_operator(function))
    readable.replace(last, function.size(), "(" + function + ")");
  return readable;
}

}  // namespace rtev
