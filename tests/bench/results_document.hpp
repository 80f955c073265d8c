// SPDX-License-Identifier: MIT
// A run as a document.
#pragma once

#include <iosfwd>
#include <string>

#include "bench/result_table.hpp"

namespace rtev::bench {

/// Markdown: machine, goals that were missed, the table. `took`: how long the run was, "24 minutes".
void write_markdown(std::ostream& out, const Report& report, const Machine& machine, const std::string& commit,
                    const std::string& took);

}  // namespace rtev::bench
