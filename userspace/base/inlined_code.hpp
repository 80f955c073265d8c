// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace rtev {

/// The name of a function of which only the line is known: its code is in that of a function of another file.
inline constexpr std::string_view inlined_code = "(inlined)";

}  // namespace rtev
