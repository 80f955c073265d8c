// SPDX-License-Identifier: MIT
#include "cli/no_match.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <optional>
#include <ranges>
#include <set>
#include <vector>

#include "base/escape.hpp"
#include "base/file_limit.hpp"
#include "base/name_globs.hpp"
#include "base/parse.hpp"
#include "base/text_buffer.hpp"
#include "base/text_format.hpp"
#include "base/units.hpp"
#include "cli/suggestion.hpp"
#include "session/process_lister.hpp"

namespace rtev::cli {
namespace {

constexpr std::size_t max_listed = 5;
constexpr std::size_t max_names = 4;  ///< of events of a kind
constexpr std::chrono::milliseconds moment{1};

/// "--name 'srever'", "--pid 1, --pid 2".
std::string selection_of(const ProcessOptions& options) {
  std::vector<std::string> parts;
  parts.reserve(options.pids.size() + options.names.size());
  for (const std::int32_t pid : options.pids) parts.push_back("--pid " + std::to_string(pid));
  for (const std::string& name : options.names) parts.push_back("--name '" + escaped(name) + "'");
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// "leaky, server and 3 more".
std::string list_of(const std::vector<std::string>& words) {
  const std::size_t listed = std::min(words.size(), max_listed);
  return fmt::format("{}{}", fmt::join(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(listed), ", "),
                     words.size() > listed ? fmt::format(" and {} more", words.size() - listed) : "");
}

/// The number of "0 to 3", or a list.
std::string list_of(const std::set<std::int32_t>& numbers) {
  const bool is_range = numbers.size() > 2 && *numbers.rbegin() - *numbers.begin() + 1 == std::ssize(numbers);
  if (is_range) return fmt::format("{} to {}", *numbers.begin(), *numbers.rbegin());
  std::vector<std::string> words;
  words.reserve(numbers.size());
  for (const std::int32_t number : numbers) words.push_back(std::to_string(number));
  return list_of(words);
}

/// `others`: a sentence that names them.
std::string hint_of(const ProcessOptions& options, const Processes& processes, std::string_view others) {
  const auto is_of_one = [&](std::int32_t pid) {
    return std::ranges::find(processes, pid, [](const auto& process) { return process.second; }) != processes.end();
  };
  if (const std::string meant = meant_pids(options.names, is_of_one); !meant.empty()) return meant;
  std::set<std::string> names;
  std::vector<std::string> listed;
  for (const auto& [name, pid] : processes) {
    const bool is_new = names.insert(name).second;
    if (!options.pids.empty())
      listed.push_back(fmt::format("{}/{}", escaped(name), pid));
    else if (is_new)
      listed.push_back(escaped(name));
  }
  const std::vector<std::string> known(names.begin(), names.end());
  for (const std::string& name : options.names) {
    const bool is_begin = std::ranges::any_of(known, [&](const std::string& word) { return word.starts_with(name); });
    const auto word = is_begin ? std::optional(name + "*") : similar_word(name, known);
    if (word) return fmt::format("did you mean --name '{}'? {} {}", escaped(*word), others, list_of(listed));
  }
  return fmt::format("{} {}", others, list_of(listed));
}

/// user "request", "render"; phase minor, ...
std::string seen_names(const EventFilter::Names& seen) {
  std::vector<std::string> kinds;
  for (const auto& [kind, names] : seen) {
    std::vector<std::string> listed;
    for (const std::string& name : names | std::views::take(max_names))
      listed.push_back(kind == "user" ? fmt::format("{}", Quoted{name}) : escaped(name));
    const bool is_cut = names.size() > max_names;
    kinds.push_back(fmt::format("{} {}{}", kind, fmt::join(listed, ", "), is_cut ? ", ..." : ""));
  }
  return fmt::format("{}", fmt::join(kinds, "; "));
}

}  // namespace

std::string meant_pids(const std::vector<std::string>& names, const std::function<bool(std::int32_t)>& is_process) {
  std::string meant;
  for (const std::string& name : names)
    if (const auto pid = parse_number<std::int32_t>(name); pid && *pid > 0 && is_process(*pid))
      meant += fmt::format(" -p {}", *pid);
  return meant.empty() ? "" : fmt::format("did you mean{}? --name selects by name", meant);
}

std::string meant_pids(const std::vector<std::string>& names) {
  return meant_pids(names, [](std::int32_t pid) { return ::kill(pid, 0) == 0 || errno == EPERM; });
}

ProcessOptions unmatched(const ProcessOptions& options, const Registry& registry) {
  ProcessOptions unmatched;
  const auto matches_none = [&](const auto& matches) { return std::ranges::none_of(registry.processes(), matches); };
  for (const std::int32_t pid : options.pids)
    if (matches_none([pid](const ProcessInfo& info) { return info.pid == pid; })) unmatched.pids.push_back(pid);
  for (const std::string& glob : options.names) {
    if (matches_none([&](const ProcessInfo& info) { return matches_name(glob, info.names()); }))
      unmatched.names.push_back(glob);
  }
  return unmatched;
}

Error no_match_error(const ProcessOptions& unmatched, const Processes& processes, const std::string& subject) {
  return {.what = "no process of",
          .subject = subject,
          .why = selection_of(unmatched) + " matches none",
          .hint = processes.empty() ? "it has no processes" : hint_of(unmatched, processes, "its processes:")};
}

std::string not_looked_at_message(const ProcessOptions& options) {
  return fmt::format(
      "rtev-bpf: whether a program matches {} is unknown: the trace ended before all programs had been looked at\n"
      "hint: trace for longer, or start fewer tracers at a time\n",
      selection_of(options));
}

std::string no_match_message(const ProcessOptions& unmatched, const helper::HelperProcess& helper) {
  ProcessLister lister(helper, {}, raise_file_limit() / 2, moment, [](const Batch&) {});
  lister.run();
  Processes processes;
  for (const ProcessInfo& info : lister.registry().processes()) processes.emplace(info.name, info.pid);
  std::string hint = meant_pids(unmatched.names);
  if (hint.empty())
    hint = processes.empty() ? "rtev-bpf ps lists OCaml 5 processes" : hint_of(unmatched, processes, "those that run:");
  return fmt::format("rtev-bpf: no OCaml 5 program that runs now matches {}\nhint: {}\n", selection_of(unmatched),
                     hint);
}

std::string no_thread_message(const SeenThreads& seen) {
  const ThreadSelection unmatched = seen.unmatched();
  std::vector<std::string> missing, present;
  for (const std::int32_t domain : unmatched.domains) missing.push_back(fmt::format("no domain {}", domain));
  for (const std::int32_t tid : unmatched.tids) missing.push_back(fmt::format("no thread {}", tid));
  if (missing.empty()) return {};
  const auto add = [&](const auto& wanted, const std::set<std::int32_t>& known, const char* one, const char* several) {
    if (!wanted.empty() && !known.empty())
      present.push_back(fmt::format("{} {}", known.size() == 1 ? one : several, list_of(known)));
  };
  add(unmatched.domains, seen.domains(), "domain", "domains");
  add(unmatched.tids, seen.tids(), "thread", "threads");
  return fmt::format("rtev-bpf: warning: {} in the stream\nhint: {}\n", list_of(missing),
                     present.empty() ? "it has no events" : fmt::format("it has {}", fmt::join(present, "; ")));
}

Error missed_run_error(const RunSpan& run, const std::string& subject) {
  const std::uint64_t length_ns = run.end_ns - std::min(run.end_ns, run.start_ns);
  TextBuffer range;
  if (run.start_realtime_ns != 0) {
    add_time_of_day(range, run.start_realtime_ns);
    range.add(" to ");
    add_time_of_day(range, run.start_realtime_ns + length_ns);
    range.add(", ");
  }
  return {.what = "nothing to show of",
          .subject = subject,
          .why = fmt::format("it has {}0s to {}, none of it in the selected time", range.text(), Duration{length_ns}),
          .hint = "--from, --to, --around and -d select the time"};
}

std::string no_event_message(const EventFilter& filter) {
  const std::vector<std::string> words = filter.unmatched();
  if (words.empty()) return {};
  std::vector<std::string> quoted, meant, others;
  for (const auto& [kind, names] : filter.others()) others.insert(others.end(), names.begin(), names.end());
  for (const std::string& word : words) {
    quoted.push_back("'" + escaped(word) + "'");
    const auto& kinds = EventFilter::all_kinds();
    if (std::ranges::find(kinds, word) != kinds.end()) continue;
    if (const auto kind = similar_word(word, kinds))
      meant.push_back(*kind);
    else if (const auto name = similar_word(word, others))
      meant.push_back("'" + escaped(*name) + "'");
  }
  std::string hint = meant.empty() ? "" : fmt::format("did you mean {}? ", fmt::join(meant, ", "));
  if (!filter.has_seen_any())
    return fmt::format("rtev-bpf: no event matches {}: there was none of any kind\n{}", fmt::join(quoted, ", "),
                       hint.empty() ? "" : "hint: " + hint.substr(0, hint.size() - 1) + '\n');
  const std::string seen = seen_names(filter.others());
  hint += seen.empty() ? fmt::format("kinds are {}", fmt::join(EventFilter::all_kinds(), ", ")) : "seen: " + seen;
  return fmt::format("rtev-bpf: no event matches {}\nhint: {}\n", fmt::join(quoted, ", "), hint);
}

std::string no_stacks_message(std::uint64_t stacks, std::string_view format) {
  if (stacks == 0) return {};
  return fmt::format(
      "rtev-bpf: the format {} holds no stacks: {} are left out\n"
      "hint: fxt holds all of them, pftrace those of CPU time; rtev-bpf profile writes flame graphs\n",
      format, Counted{stacks, "stack sample", "stack samples"});
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
