// SPDX-License-Identifier: MIT
// Options whose value is one of a few words.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/escape.hpp"

namespace rtev {

/// Compressing is no format of its own.
inline std::string hint_about(std::string_view text) {
  return text.ends_with(".gz") ? "\nhint: to compress, let the name of the file end in .gz: -o FILE.gz" : "";
}

/// One of a few words, listed in this order.
template <typename Enum, typename Value>
void add_choice(CLI::App& app, const char* name, Value& value, std::vector<std::pair<std::string, Enum>> choices,
                const std::string& help) {
  std::string words;
  for (const auto& [word, meaning] : choices) words += (words.empty() ? "" : "|") + word;
  app.add_option_function<std::string>(
         name,
         [&value, name, words, choices = std::move(choices)](const std::string& text) {
           const auto choice = std::ranges::find(choices, text, &std::pair<std::string, Enum>::first);
           if (choice == choices.end())
             throw CLI::ValidationError(name, "'" + escaped(text) + "' is none of " + words + hint_about(text));
           value = choice->second;
         },
         help)
      ->type_name(words);
}

}  // namespace rtev
