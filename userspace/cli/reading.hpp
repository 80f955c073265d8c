// SPDX-License-Identifier: MIT
// Runs that read a stream: what dump and convert share, and what latency, pauses and stats share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/limits.hpp"
#include "cli/options.hpp"
#include "formats/output/output.hpp"
#include "stream/sink.hpp"

namespace rtev::cli {

/// Writes the stream of options.input to options.output. `otherwise` is the format if nothing else decides. Returns
/// the exit status.
int copy(const CopyOptions& options, const Invocation& invocation, Format otherwise);

/// The name of a file as an argument in a shell, for hints; empty if the input is none that can be read again.
std::string input_argument(const std::string& input);

/// The text of a report, unless there was no process that it could be about.
std::string text_about(const Registry& registry, std::string text);

/// Feeds the sink from options.input, or by tracing if that is empty. At the end, while processes can still be named,
/// `report` is called once and what it returns is written. Limits apply to what `limited` returns after that, without
/// it to pauses. `samples_threads`: see Tracing. Returns the exit status.
int analyse(const AnalysisOptions& options, const Invocation& invocation, Sink& sink, FdOutput& output,
            const std::function<std::string(const Registry& registry)>& report,
            std::function<LimitedDurations()> limited = {}, bool samples_threads = false);

}  // namespace rtev::cli
