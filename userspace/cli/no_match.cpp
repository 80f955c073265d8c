// SPDX-License-Identifier: MIT
#include "cli/no_match.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <ranges>
#include <vector>

#include "base/escape.hpp"
#include "base/file_limit.hpp"
#include "base/text_format.hpp"
#include "cli/suggestion.hpp"
#include "session/process_lister.hpp"

namespace rtev::cli {
namespace {

constexpr std::size_t max_listed = 8;
constexpr std::chrono::milliseconds moment{1};

/// "-n 'srever'", "-p 1, -p 2".
std::string selection_of(const ProcessOptions& options) {
  std::vector<std::string> parts;
  parts.reserve(options.pids.size() + options.names.size());
  for (const std::int32_t pid : options.pids) parts.push_back("-p " + std::to_string(pid));
  for (const std::string& name : options.names) parts.push_back("-n '" + escaped(name) + "'");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string list_of(const std::set<std::string>& names) {
  std::vector<std::string> listed;
  for (const std::string& name : names | std::views::take(max_listed)) listed.push_back(escaped(name));
  const std::size_t more = names.size() - listed.size();
  return fmt::format("{}{}", fmt::join(listed, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

/// `others`: a sentence that names them.
std::string hint_of(const ProcessOptions& options, const std::set<std::string>& names, std::string_view others) {
  if (names.empty()) return "rtev-bpf ps lists OCaml 5 processes";
  const std::vector<std::string> known(names.begin(), names.end());
  for (const std::string& name : options.names) {
    const bool is_begin = std::ranges::any_of(known, [&](const std::string& word) { return word.starts_with(name); });
    const auto word = is_begin ? std::optional(name + "*") : similar_word(name, known);
    if (word) return fmt::format("did you mean -n '{}'? {} {}", escaped(*word), others, list_of(names));
  }
  return fmt::format("{} {}", others, list_of(names));
}

/// user "request", "render"; phase minor, ...
std::string seen_names(const EventFilter::Names& seen) {
  std::vector<std::string> kinds;
  for (const auto& [kind, names] : seen) {
    std::vector<std::string> listed;
    for (const std::string& name : names)
      listed.push_back(kind == "user" ? fmt::format("{}", Quoted{name}) : escaped(name));
    const bool is_cut = names.size() == EventFilter::max_others;
    kinds.push_back(fmt::format("{} {}{}", kind, fmt::join(listed, ", "), is_cut ? ", ..." : ""));
  }
  return fmt::format("{}", fmt::join(kinds, "; "));
}

}  // namespace

Error no_match_error(const ProcessOptions& options, const std::set<std::string>& names, const std::string& subject) {
  return {.what = "no process of",
          .subject = subject,
          .why = selection_of(options) + " matches none",
          .hint = hint_of(options, names, "it has")};
}

bool selects_none(const ProcessOptions& options, const Registry& registry) {
  return !(options.pids.empty() && options.names.empty()) && std::ranges::empty(registry.processes());
}

std::string no_match_message(const ProcessOptions& options, const helper::HelperProcess& helper) {
  ProcessLister lister(helper, {}, raise_file_limit() / 2, [](const Batch&) {});
  lister.run(moment);
  std::set<std::string> names;
  for (const ProcessInfo& info : lister.registry().processes()) names.insert(info.comm);
  return fmt::format("rtev-bpf: no OCaml 5 program that runs now matches {}\nhint: {}\n", selection_of(options),
                     hint_of(options, names, "now run"));
}

std::string no_event_message(const EventFilter& filter) {
  const std::vector<std::string> words = filter.unmatched();
  if (words.empty()) return {};
  std::vector<std::string> quoted;
  std::string hint;
  for (const std::string& word : words) {
    quoted.push_back("'" + escaped(word) + "'");
    const auto kind = similar_word(word, EventFilter::all_kinds());
    if (kind && *kind != word && hint.empty()) hint = "did you mean " + *kind + "? ";
  }
  if (const std::string seen = seen_names(filter.others()); !seen.empty()) hint += "seen: " + seen + "; ";
  return fmt::format("rtev-bpf: no event matches {}\nhint: {}kinds are {}\n", fmt::join(quoted, ", "), hint,
                     fmt::join(EventFilter::all_kinds(), ", "));
}

std::string mistyped_kind_note(std::string_view list) {
  const auto filter = list.empty() ? EventFilter() : EventFilter::parse(list).value_or(EventFilter());
  for (const std::string& name : filter.names()) {
    if (const auto kind = similar_word(name, EventFilter::all_kinds()))
      return fmt::format("rtev-bpf: '{}' of --events is taken for a name\nhint: did you mean the kind {}?\n",
                         escaped(name), *kind);
  }
  return {};
}

}  // namespace rtev::cli
