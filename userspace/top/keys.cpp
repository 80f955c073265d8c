// SPDX-License-Identifier: MIT
#include "top/keys.hpp"

#include <algorithm>
#include <utility>

namespace rtev::top {
namespace {

constexpr char escape_byte = '\033', delete_byte = '\177';
constexpr std::size_t max_sequence = 16;

Key::Kind kind_of_sequence(std::string_view sequence) {
  using enum Key::Kind;
  constexpr std::pair<std::string_view, Key::Kind> known[] = {
      {"[A", up},   {"[B", down}, {"[C", right},    {"[D", left},       {"OA", up},   {"OB", down},  {"OC", right},
      {"OD", left}, {"[H", home}, {"[F", end},      {"OH", home},       {"OF", end},  {"[1~", home}, {"[7~", home},
      {"[4~", end}, {"[8~", end}, {"[5~", page_up}, {"[6~", page_down}, {"OM", enter}};
  const auto found = std::ranges::find(known, sequence, [](const auto& entry) { return entry.first; });
  return found != std::end(known) ? found->second : other;
}

/// True if no more bytes belong to the sequence after ESC.
bool is_complete(std::string_view sequence) {
  const char first = sequence.front(), last = sequence.back();
  if (first == 'O') return sequence.size() == 2;
  return sequence.size() > 1 && last >= '@' && last <= '~';
}

}  // namespace

void KeyDecoder::add(std::string_view bytes, std::vector<Key>& keys) {
  for (const char byte : bytes) add(byte, keys);
}

void KeyDecoder::add(char byte, std::vector<Key>& keys) {
  using enum Key::Kind;
  const bool begins_sequence = byte == '[' || byte == 'O';
  // Other characters after ESC are keys of their own: quick typists press Escape, too.
  if (!sequence_.empty() && byte != escape_byte && (sequence_.size() > 1 || begins_sequence)) {
    sequence_ += byte;
    const std::string_view rest = std::string_view(sequence_).substr(1);
    if (!is_complete(rest) && sequence_.size() < max_sequence) return;
    keys.push_back({.kind = kind_of_sequence(rest)});
    sequence_.clear();
    return;
  }
  finish(keys);
  if (byte == escape_byte) {
    sequence_ = byte;
  } else if (byte == '\r' || byte == '\n') {
    keys.push_back({.kind = enter});
  } else if (byte == delete_byte || byte == '\b') {
    keys.push_back({.kind = backspace});
  } else if (byte >= ' ' && byte <= '~') {
    keys.push_back({.kind = character, .character = byte});
  }
}

void KeyDecoder::finish(std::vector<Key>& keys) {
  if (std::exchange(sequence_, {}).size() == 1) keys.push_back({.kind = Key::Kind::escape});
}

}  // namespace rtev::top
