// SPDX-License-Identifier: MIT
// Failures of librtev: std::expected with an Error. Functions that return a Result do not throw, except std::bad_alloc.
#pragma once

#include <expected>
#include <string>
#include <system_error>

namespace rtev {

/// A failure: what failed, on what, why, and what to do next.
struct Error {
  std::string what;       ///< what was attempted, e.g. "cannot open ring"
  std::string subject{};  ///< a path, a process; can be empty, can have any bytes
  std::string why{};      ///< the reason, e.g. the text of errno
  std::string hint{};     ///< what the user can do; can be empty
  int code = 0;           ///< errno if a system call failed, else 0

  /// "what subject: why", without the hint. Control characters and non-ASCII bytes of the subject are escaped as \xNN,
  /// because a traced process can choose them.
  std::string message() const;
};

template <typename T>
using Result = std::expected<T, Error>;

/// An Error whose reason is the text of an errno value.
inline std::unexpected<Error> errno_error(int code, std::string what, std::string subject = {}, std::string hint = {}) {
  return std::unexpected(
      Error{std::move(what), std::move(subject), std::generic_category().message(code), std::move(hint), code});
}

}  // namespace rtev
