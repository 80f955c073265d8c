// SPDX-License-Identifier: MIT
// How librtev reports what can fail: std::expected with an Error that a person can act on.
#pragma once

#include <expected>
#include <string>
#include <system_error>

namespace rtev {

/// A failure in the words of its reader: what failed, on what, why, and what to do next.
struct Error {
  std::string what;       ///< what was attempted, e.g. "cannot open ring"
  std::string subject{};  ///< on what: a path, a process; may be empty
  std::string why{};      ///< the reason, e.g. the text of errno
  std::string hint{};     ///< the next step for the reader; may be empty
  int code = 0;           ///< errno where there was one, else 0

  /// "what subject: why", without the hint. Control characters of the subject are escaped.
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
