// SPDX-License-Identifier: MIT
// Which processes run one program.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rtev {

/// Reports show more processes of one program than this in one row, with their sums.
inline constexpr std::size_t max_single_processes = 5;

/// The same for all processes of a program: its file, and of one that runs_another_file() the name of the process,
/// which is that of the other file.
std::string program_key(std::string_view exe, std::string_view comm);

}  // namespace rtev
