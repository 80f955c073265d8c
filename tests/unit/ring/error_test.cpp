// SPDX-License-Identifier: MIT
#include "rtev/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace rtev {
namespace {

TEST(Error, MessageOmitsEmptyParts) {
  EXPECT_EQ(Error{.what = "cannot start"}.message(), "cannot start");
  EXPECT_EQ((Error{.what = "cannot open ring", .subject = "a b"}.message()), "cannot open ring a b");
  EXPECT_EQ((Error{.what = "cannot start", .why = "no memory", .hint = "buy some"}.message()),
            "cannot start: no memory");
  EXPECT_EQ((Error{.what = "cannot open ring", .subject = "x", .why = "gone"}.message()), "cannot open ring x: gone");
}

TEST(Error, ControlCharactersOfTheSubjectAreEscaped) {
  const Error error{.what = "cannot open", .subject = "a\x1b[2J\n\x7f\xc3\xa9~"};
  EXPECT_EQ(error.message(), R"(cannot open a\x1b[2J\x0a\x7f\xc3\xa9~)");
  EXPECT_EQ((Error{.what = "cannot open", .subject = std::string("\0\xff", 2)}.message()), R"(cannot open \x00\xff)");
}

TEST(Error, OfErrno) {
  const Result<int> failed = errno_error(ENOENT, "cannot open", "f", "make it");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ENOENT);
  EXPECT_EQ(failed.error().hint, "make it");
  EXPECT_EQ(failed.error().message(), "cannot open f: No such file or directory");
}

}  // namespace
}  // namespace rtev
