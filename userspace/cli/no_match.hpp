// SPDX-License-Identifier: MIT
// What is said where -p or -n select no process, or --events no event.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "cli/options.hpp"
#include "helper/helper_process.hpp"
#include "rtev/error.hpp"
#include "stream/filter.hpp"
#include "stream/registry.hpp"

namespace rtev::cli {

/// No process matched; `names` are those of others.
Error no_match_error(const ProcessOptions& options, const std::set<std::string>& names, const std::string& subject);

/// True if processes are to be selected, and none of those that run now is.
bool selects_none(const ProcessOptions& options, const Registry& registry);

/// When a trace begins that selects none. Looks for others to name, which takes a tenth of a second. Any thread.
std::string no_match_message(const ProcessOptions& options, const helper::HelperProcess& helper);

/// After the stream, if a word of --events matched none of its events; else empty.
std::string no_event_message(const EventFilter& filter);

/// Before the stream, if a name in the list of --events is like a kind; else empty. It may be right nevertheless.
std::string mistyped_kind_note(std::string_view list);

}  // namespace rtev::cli
