// SPDX-License-Identifier: MIT
// What is said where an option that selects matches nothing: -p, -n, --events, --domain, --tid, --from, --to, --around.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.hpp"
#include "helper/helper_process.hpp"
#include "rtev/error.hpp"
#include "stream/filter.hpp"
#include "stream/registry.hpp"
#include "stream/seen_threads.hpp"

namespace rtev::cli {

/// Names and ids of processes.
using Processes = Selection::Processes;

/// Of the options those that none of these processes matches.
ProcessOptions unmatched(const ProcessOptions& options, const Registry& registry);

/// These options match no process of a recording, which has these ones. Without a hint if it has none.
Error no_match_error(const ProcessOptions& unmatched, const Processes& processes, const std::string& subject);

/// For who gives the ids of processes as names: "did you mean -p 42? ..."; empty if none of them is one.
std::string meant_pids(const std::vector<std::string>& names, const std::function<bool(std::int32_t)>& is_process);
/// The same of those that run now.
std::string meant_pids(const std::vector<std::string>& names);

/// When a trace begins: no program that runs matches these options. Looks for others to name, which takes a tenth of a
/// second. Any thread.
std::string no_match_message(const ProcessOptions& unmatched, const helper::HelperProcess& helper);
/// No program matches that was seen, but not all programs of the host could be looked at.
std::string not_looked_at_message(const ProcessOptions& options);

/// After the stream, if it has no event of a domain of --domain or of a thread of --tid; else empty.
std::string no_thread_message(const SeenThreads& seen);

/// After a recording, of which nothing is in the time of --from, --to or --around.
Error missed_run_error(const RunSpan& run, const std::string& subject);

/// After the stream, if a word of --events matched none of its events; else empty.
std::string no_event_message(const EventFilter& filter);

/// What a file in a format without stacks lacks of a stream with them; empty if there are none.
std::string no_stacks_message(std::uint64_t stacks, std::string_view format);

/// Before the stream, if a name in the list of --events is like a kind; else empty. It may be right nevertheless.
std::string mistyped_kind_note(std::string_view list);

}  // namespace rtev::cli
