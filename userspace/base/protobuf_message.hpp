// SPDX-License-Identifier: MIT
// Writes messages of protocol buffers.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/text_buffer.hpp"

namespace rtev::protobuf {

using Tag = std::uint32_t;

/// A message being built at the end of a buffer. `Field` is an enum of its fields. A message within another one is
/// complete when it goes out of scope, and is left out if it is empty. Most messages are shorter than 128 bytes, so one
/// byte is kept for the length; protozero keeps five and moves every message.
template <typename Field>
class Message {
 public:
  explicit Message(TextBuffer& out) : out_(out) {}
  template <typename Parent>
  Message(Message<Parent>& parent, Parent field) : out_(parent.out_), field_at_(out_.size()) {
    out_.add_with(max_varint, [&](char* at) { return put_tag(at, field, length_delimited); });
    begin_ = out_.size() + 1;
    out_.extend(1);
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() {
    if (begin_ != 0) close();
  }

  /// An integer, a truth value or an enumerator.
  template <typename Number>
    requires std::integral<Number> || std::is_enum_v<Number>
  void add_number(Field field, Number value) {
    out_.add_with(2 * max_varint,
                  [&](char* at) { return put_varint(put_tag(at, field, varint), static_cast<std::uint64_t>(value)); });
  }
  /// 8 bytes, whatever the value is.
  void add_fixed(Field field, std::uint64_t value) {
    static_assert(std::endian::native == std::endian::little);
    out_.add_with(max_varint + sizeof value, [&](char* at) {
      at = put_tag(at, field, fixed_64_bit);
      std::memcpy(at, &value, sizeof value);
      return at + sizeof value;
    });
  }
  /// Text, which must be UTF-8, or a message.
  void add_bytes(Field field, std::string_view bytes) {
    add_bytes(field, bytes.size(), [&](char* at) { bytes.copy(at, bytes.size()); });
  }
  /// As many bytes as `write` writes to the place that it gets.
  template <typename Write>
  void add_bytes(Field field, std::size_t size, Write&& write) {
    out_.add_with(2 * max_varint + size, [&](char* at) {
      at = put_varint(put_tag(at, field, length_delimited), size);
      write(at);
      return at + size;
    });
  }

 private:
  template <typename>
  friend class Message;

  enum WireType : Tag { varint = 0, fixed_64_bit = 1, length_delimited = 2 };
  static constexpr std::size_t max_varint = 10;

  static char* put_varint(char* at, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) *at++ = static_cast<char>(value | 0x80);
    *at++ = static_cast<char>(value);
    return at;
  }
  template <typename AnyField>
  static char* put_tag(char* at, AnyField field, WireType type) {
    return put_varint(at, static_cast<Tag>(field) << 3 | type);
  }

  void close() {
    const std::size_t length = out_.size() - begin_;
    if (length == 0) return out_.cut(field_at_);
    const std::size_t more = (static_cast<std::size_t>(std::bit_width(length)) - 1) / 7;  // bytes for the length
    if (more > 0) [[unlikely]] {
      out_.extend(more);
      std::memmove(out_.data() + begin_ + more, out_.data() + begin_, length);
    }
    put_varint(out_.data() + begin_ - 1, length);
  }

  TextBuffer& out_;
  std::size_t field_at_ = 0;
  std::size_t begin_ = 0;  ///< of the content; 0 for a message that is in no other
};

}  // namespace rtev::protobuf
