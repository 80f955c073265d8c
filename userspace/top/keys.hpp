// SPDX-License-Identifier: MIT
// Keys of a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rtev::top {

struct Key {
  enum class Kind : std::uint8_t {
    character,
    enter,
    escape,
    backspace,
    up,
    down,
    left,
    right,
    page_up,
    page_down,
    home,
    end,
    other,  ///< that means nothing here
  };
  Kind kind = Kind::other;
  char character = 0;  ///< of Kind::character: printable ASCII

  bool operator==(const Key&) const = default;
};

/// Decodes what a terminal sends: characters and the escape sequences of VT100 and xterm. Bytes come in any pieces.
class KeyDecoder {
 public:
  void add(std::string_view bytes, std::vector<Key>& keys);
  /// True if an escape character waits for the rest of a sequence. If none comes soon, it was the key.
  bool is_open() const { return !sequence_.empty(); }
  void finish(std::vector<Key>& keys);

 private:
  void add(char byte, std::vector<Key>& keys);

  std::string sequence_;  ///< begins with ESC
};

}  // namespace rtev::top
