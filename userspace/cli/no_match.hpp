// SPDX-License-Identifier: MIT
// What is said where -p or -n select no process.
#pragma once

#include <set>
#include <string>

#include "cli/options.hpp"
#include "helper/helper_process.hpp"
#include "rtev/error.hpp"
#include "stream/registry.hpp"

namespace rtev::cli {

/// No process matched; `names` are those of others.
Error no_match_error(const ProcessOptions& options, const std::set<std::string>& names, const std::string& subject);

/// When a trace begins: no process is selected that runs now. Empty if there is one. Looks for others to name.
std::string no_match_message(const ProcessOptions& options, const Registry& registry,
                             const helper::HelperProcess& helper);

}  // namespace rtev::cli
