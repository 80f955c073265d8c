// SPDX-License-Identifier: MIT
// Options of a service from a file: its keys are the long options.
#pragma once

namespace CLI {
class App;
}

namespace rtev::cli {

/// Adds --config FILE: lines "key = value", comments with #. Options of the command line win. Errors in the file are
/// errors of the command line. Call it before the other options are added, since values are taken in that order.
void add_config_option(CLI::App& app);

}  // namespace rtev::cli
