// SPDX-License-Identifier: MIT
// Keys from the bytes that terminals send, in any pieces.
#include "top/keys.hpp"

#include <gmock/gmock.h>

#include <random>
#include <string>
#include <vector>

namespace rtev::top {
namespace {

using Kind = Key::Kind;
using testing::ElementsAre;

std::vector<Key::Kind> kinds_of(const std::vector<std::string>& pieces) {
  KeyDecoder decoder;
  std::vector<Key> keys;
  for (const std::string& piece : pieces) decoder.add(piece, keys);
  decoder.finish(keys);
  std::vector<Key::Kind> kinds;
  for (const Key& key : keys) kinds.push_back(key.kind);
  return kinds;
}

TEST(KeyDecoder, KnowsTheSequencesOfTerminals) {
  EXPECT_THAT(kinds_of({"\033[A\033OB\033[C\033[D"}), ElementsAre(Kind::up, Kind::down, Kind::right, Kind::left));
  EXPECT_THAT(kinds_of({"\033[5~\033[6~\033[H\033[4~"}),
              ElementsAre(Kind::page_up, Kind::page_down, Kind::home, Kind::end));
  EXPECT_THAT(kinds_of({"\r\177\b"}), ElementsAre(Kind::enter, Kind::backspace, Kind::backspace));
  EXPECT_THAT(kinds_of({"\033[1;5C"}), ElementsAre(Kind::other)) << "Ctrl-right";
}

TEST(KeyDecoder, TakesSequencesInPieces) {
  EXPECT_THAT(kinds_of({"\033", "[", "A"}), ElementsAre(Kind::up));
  EXPECT_THAT(kinds_of({"\033[", "5", "~x"}), ElementsAre(Kind::page_up, Kind::character));
}

TEST(KeyDecoder, AnEscapeCharacterAloneIsAKey) {
  EXPECT_THAT(kinds_of({"\033"}), ElementsAre(Kind::escape));
  EXPECT_THAT(kinds_of({"\033\033[B"}), ElementsAre(Kind::escape, Kind::down));
  EXPECT_THAT(kinds_of({"\033/\r"}), ElementsAre(Kind::escape, Kind::character, Kind::enter));
  EXPECT_THAT(kinds_of({"\033["}), ElementsAre()) << "a sequence that was cut off";
}

TEST(KeyDecoder, GivesPrintableCharactersOnly) {
  std::mt19937 random(1);
  for (int run = 0; run < 100; ++run) {
    KeyDecoder decoder;
    std::vector<Key> keys;
    for (int i = 0; i < 200; ++i) decoder.add(std::string(1, static_cast<char>(random() % 256)), keys);
    decoder.finish(keys);
    EXPECT_FALSE(decoder.is_open());
    for (const Key& key : keys) {
      if (key.kind != Kind::character) continue;
      EXPECT_GE(key.character, ' ');
      EXPECT_LE(key.character, '~');
    }
  }
}

}  // namespace
}  // namespace rtev::top
