// SPDX-License-Identifier: MIT
// What `profile` and `allocs` share: how they run, and the files that they write.
#pragma once

#include <functional>
#include <string>

#include "analysis/profile/profile_sink.hpp"
#include "cli/options.hpp"

namespace rtev::cli {

/// Those of add_analysis_options(), with the suffixes of the files of profiles.
void add_profile_options(CLI::App& app, AnalysisOptions& options);

/// Runs the analysis and writes its report, or the file of -o. `report_text`: as text or as JSON. Returns the exit
/// status: as for spans, a recording that has none of the samples is an error.
int run_profile(const AnalysisOptions& options, const Invocation& invocation, ProfileOptions profile,
                const std::function<std::string(const ProfileReport& report)>& report_text);

}  // namespace rtev::cli
