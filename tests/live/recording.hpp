// SPDX-License-Identifier: MIT
// Makes recordings with the tool under test, and converts and dumps them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "live/tracer.hpp"

namespace rtev::test {

std::string read_file(const std::filesystem::path& path);

/// Runs `rtev-bpf dump` on a recording: JSON lines and messages. The exit status must be 0.
Outcome dump(const std::filesystem::path& recording);

/// Runs `rtev-bpf convert`; the suffix of `to` selects the format.
void convert(const std::filesystem::path& from, const std::filesystem::path& to);

/// The first line in which both texts differ; empty if they are equal.
std::string first_difference(std::string_view expected, std::string_view got);

}  // namespace rtev::test
