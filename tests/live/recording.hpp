// SPDX-License-Identifier: MIT
// Recordings made by the tool under test, and what the tool makes of them again.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "live/tracer.hpp"

namespace rtev::test {

std::string read_file(const std::filesystem::path& path);

/// What `rtev-bpf dump` makes of a recording: JSON lines, and what it has to say of it. The exit status must be 0.
Outcome dump(const std::filesystem::path& recording);

/// Makes `to`, of the format that its name says, with `rtev-bpf convert`.
void convert(const std::filesystem::path& from, const std::filesystem::path& to);

/// Empty if both texts are the same, else the first line in which they differ.
std::string first_difference(std::string_view expected, std::string_view got);

}  // namespace rtev::test
