// SPDX-License-Identifier: MIT
#include "base/protobuf_message.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace rtev::test {
namespace {

using protobuf::Message;
enum class Outer : protobuf::Tag { number = 1, text = 2, inner = 16 };
enum class Inner : protobuf::Tag { text = 1, place = 2 };

/// Varints as the specification of protocol buffers has them.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value /= 128) bytes += static_cast<char>(128 + value % 128);
  return bytes += static_cast<char>(value);
}

TEST(ProtobufMessage, NumbersHaveTheFewestBytes) {
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, UINT64_MAX}) {
    TextBuffer out;
    Message<Outer>(out).add_number(Outer::number, value);
    EXPECT_EQ(out.text(), "\x08" + varint(value));
  }
  TextBuffer out;
  Message<Outer>(out).add_number(Outer::number, std::int32_t{-1});
  EXPECT_EQ(out.text(), "\x08" + varint(UINT64_MAX));
}

TEST(ProtobufMessage, AMessageMayHaveAnyLength) {
  for (const std::size_t length : {1, 125, 126, 127, 128, 16'380, 16'381, 16'384, 3'000'000}) {
    const std::string text(length, 'x');
    TextBuffer out;
    {
      Message<Outer> outer(out);
      outer.add_bytes(Outer::text, "before");
      {
        Message<Inner> inner(outer, Outer::inner);
        inner.add_bytes(Inner::text, text);
      }
      outer.add_number(Outer::number, 5);
    }
    const std::string content = "\x0a" + varint(length) + text;
    EXPECT_TRUE(out.text() ==
                "\x12\x06"
                "before" +
                    varint(16 << 3 | 2) + varint(content.size()) + content + "\x08\x05");
  }
}

TEST(ProtobufMessage, AnEmptyMessageIsLeftOut) {
  TextBuffer out;
  Message<Outer> outer(out);
  outer.add_number(Outer::number, 1);
  {
    const Message<Inner> inner(outer, Outer::inner);
  }
  EXPECT_EQ(out.text(), "\x08\x01");
}

TEST(ProtobufMessage, FixedNumbersHave8Bytes) {
  TextBuffer out;
  Message<Inner>(out).add_fixed(Inner::place, 0x0807060504030201);
  EXPECT_EQ(out.text(), "\x11\x01\x02\x03\x04\x05\x06\x07\x08");
}

}  // namespace
}  // namespace rtev::test
