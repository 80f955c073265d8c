// SPDX-License-Identifier: MIT
// Why the events of a process are not switched on.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "stream/records.hpp"

namespace rtev::enable {

struct Refused {
  EnableResult result{};
  std::string why{};        ///< for people; may hold any bytes that the process chose
  std::string hint{};       ///< what the user can do
  bool is_passing = false;  ///< a moment later it may be otherwise
};
template <typename Value>
using Checked = std::expected<Value, Refused>;

inline std::unexpected<Refused> refuse(EnableResult result, std::string why, std::string hint = {}) {
  return std::unexpected(Refused{.result = result, .why = std::move(why), .hint = std::move(hint)});
}

inline std::unexpected<Refused> ended() {
  return refuse(EnableResult::gone, "it ended");
}

}  // namespace rtev::enable
