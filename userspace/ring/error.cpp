// SPDX-License-Identifier: MIT
#include "rtev/error.hpp"

#include <array>

namespace rtev {
namespace {

// A traced process may have chosen the subject; it must not send control sequences to the user's terminal.
std::string printable(std::string_view text) {
  static constexpr std::array digits = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  std::string out;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte >= 0x20 && byte < 0x7f) {
      out += character;
    } else {
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out;
}

}  // namespace

std::string Error::message() const {
  std::string text = what;
  if (!subject.empty()) text.append(" ").append(printable(subject));
  if (!why.empty()) text.append(": ").append(why);
  return text;
}

}  // namespace rtev
