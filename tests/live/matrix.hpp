// SPDX-License-Identifier: MIT
// What a live test proves, for the tables of docs/tested.md, which list the tests that passed.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace rtev::test {

/// A row of the table: `group` is "binary", "place", "life", "kernel"…, `what` the case in a few words ("stripped and
/// static"), `ocaml` the version that ran it. One call a test.
inline void covers(const std::string& group, const std::string& what, const std::string& ocaml = "5.3.0") {
  ::testing::Test::RecordProperty("matrix", group + "|" + what + "|" + ocaml);
}

}  // namespace rtev::test
