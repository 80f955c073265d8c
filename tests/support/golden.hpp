// SPDX-License-Identifier: MIT
// Expected texts in files.
#pragma once

#include <string>

namespace rtev::test {

/// The contents of a file, by its path below tests/unit.
std::string golden(const std::string& path);

}  // namespace rtev::test
