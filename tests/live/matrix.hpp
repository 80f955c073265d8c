// SPDX-License-Identifier: MIT
// Records which case a live test proves. docs/tested.md lists the cases of the tests that passed.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace rtev::test {

/// Records a row of the tables: `group` is "binary", "place", "lifecycle", "kernel"…, `what` describes the case in a
/// few words ("stripped and static"), `ocaml` is the version of the program. Call once per test.
inline void covers(const std::string& group, const std::string& what, const std::string& ocaml = "5.3.0") {
  ::testing::Test::RecordProperty("matrix", group + "|" + what + "|" + ocaml);
}

}  // namespace rtev::test
