// SPDX-License-Identifier: MIT
// Lines of a screen, with styles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rtev::top {

/// Styles only repeat what the text says: no meaning is lost without colours.
enum class Style : std::uint8_t { plain, bold, dim, title, selected, alarm, selected_alarm };

struct Piece {
  std::string text;  ///< UTF-8 without control characters
  Style style = Style::plain;
};

/// One line of a screen, from left to right.
class Line {
 public:
  Line() = default;
  explicit Line(std::string text, Style style = Style::plain) { add(std::move(text), style); }

  Line& add(std::string text, Style style = Style::plain) {
    if (!text.empty()) pieces_.push_back({std::move(text), style});
    return *this;
  }
  std::size_t columns() const;
  /// At most so many columns: the rest is cut off.
  void cut(std::size_t columns);
  /// At least so many columns, with blanks of the style.
  void pad(std::size_t columns, Style style);
  const std::vector<Piece>& pieces() const { return pieces_; }
  std::string text() const;

 private:
  std::vector<Piece> pieces_;
};

using Lines = std::vector<Line>;

}  // namespace rtev::top
