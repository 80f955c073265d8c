// SPDX-License-Identifier: MIT
#include "base/base64.hpp"

#include <gtest/gtest.h>

namespace rtev {
namespace {

TEST(Base64, KnownAnswers) {  // RFC 4648, section 10
  const std::pair<std::string_view, std::string_view> known[] = {{"", ""},
                                                                 {"f", "Zg=="},
                                                                 {"fo", "Zm8="},
                                                                 {"foo", "Zm9v"},
                                                                 {"foob", "Zm9vYg=="},
                                                                 {"fooba", "Zm9vYmE="},
                                                                 {"foobar", "Zm9vYmFy"},
                                                                 {"\xFB\xFF\xBF", "+/+/"}};
  for (const auto& [bytes, text] : known) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, EveryByteAtEveryPlace) {
  for (std::size_t length = 1; length <= 7; ++length) {
    for (int byte = 0; byte < 256; ++byte) {
      for (std::size_t place = 0; place < length; ++place) {
        std::string bytes(length, '\x5A');
        bytes[place] = static_cast<char>(byte);
        EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
      }
    }
  }
}

TEST(Base64, OnlyWhatIsWrittenIsRead) {
  for (const std::string_view text : {"Z", "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9v\n", "Zm 9", "Zm-_", "=m9v",
                                      "Z=9v", "Zm=v", "Zh==", "Zm9=", "Zm9\xFF"}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
}

}  // namespace
}  // namespace rtev
