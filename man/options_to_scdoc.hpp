// SPDX-License-Identifier: MIT
// Manual pages are written in scdoc(5), with directives that this replaces by the texts of --help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "rtev/error.hpp"

namespace rtev::man {

/// Replaces lines of a template, and "@VERSION@" anywhere in it:
/// - "@options@" by the options of the program itself,
/// - "@command NAME@" by a subsection on a subcommand: its usage, what its help says, and its options. Options that
///   the program itself has with the same help are only listed by name.
/// Fails on other directives and if a subcommand of the program has no subsection.
Result<std::string> fill_template(std::string_view text, const CLI::App& program);

}  // namespace rtev::man
