// SPDX-License-Identifier: MIT
// What the commands share that say why a program was slow: the stream comes from tracing or from a file.
#pragma once

#include <functional>
#include <string>

#include "cli/options.hpp"
#include "formats/output/output.hpp"
#include "stream/sink.hpp"

namespace rtev::cli {

/// Feeds a sink from options.target where there is one, else by tracing. `report` is called once, when the stream has
/// ended and what it is about can be named; what it returns is written. Returns the exit status.
int analyse(const Options& options, Sink& sink, FdOutput& output,
            const std::function<std::string(const Registry& registry)>& report);

}  // namespace rtev::cli
