// SPDX-License-Identifier: MIT
#include "top/lines.hpp"

#include "base/folding.hpp"
#include "base/utf8.hpp"

namespace rtev::top {

std::size_t Line::columns() const {
  std::size_t columns = 0;
  for (const Piece& piece : pieces_) columns += columns_of(piece.text);
  return columns;
}

void Line::cut(std::size_t columns) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const std::size_t more = columns_of(pieces_[i].text);
    if (used + more <= columns) {
      used += more;
      continue;
    }
    const bool fits_partly = columns > used;
    if (fits_partly) pieces_[i].text = rtev::cut(pieces_[i].text, columns - used);
    pieces_.resize(fits_partly ? i + 1 : i);
    return;
  }
}

void Line::pad(std::size_t columns, Style style) {
  const std::size_t used = this->columns();
  if (used < columns) add(std::string(columns - used, ' '), style);
}

std::string Line::text() const {
  std::string text;
  for (const Piece& piece : pieces_) text += piece.text;
  return text;
}

}  // namespace rtev::top
