// SPDX-License-Identifier: MIT
// The payloads of user events that known libraries write, as fields: Eio, Lwt, Miou and ocaml-trace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "base/text_buffer.hpp"

namespace rtev {

/// A part of a payload. Texts are any bytes, and point into the payload.
struct UserField {
  std::string_view name;  ///< plain ASCII
  std::variant<std::int64_t, double, std::string_view> value;
};

/// A list of at most so many elements.
template <typename T, std::size_t capacity>
class ShortList {
 public:
  static constexpr std::size_t most = capacity;

  const T* begin() const { return elements_.data(); }
  const T* end() const { return elements_.data() + count_; }
  bool empty() const { return count_ == 0; }
  void add(const T& element) { elements_.at(count_++) = element; }

 private:
  std::array<T, capacity> elements_{};
  std::size_t count_ = 0;
};

using UserFields = ShortList<UserField, 4>;
using UserIntegers = ShortList<std::int64_t, 2>;

/// The fields of the payload of a custom event with this name. None if no known library writes such an event, or if the
/// payload is not what the library writes: another length, or a number where it has no meaning.
UserFields user_fields(std::string_view event, std::span<const std::byte> payload);

/// The integers of any other payload of 8 or 16 bytes that is no text: identifiers and counts, in the byte order of the
/// host. None of payloads of other sizes.
UserIntegers user_integers(std::span<const std::byte> payload);

/// `5 -7`.
void add_user_integers(TextBuffer& out, const UserIntegers& integers);

/// `id=5 name="main"`. Texts are escaped and cut at `longest_text` bytes.
void add_user_fields(TextBuffer& out, const UserFields& fields, std::size_t longest_text);

}  // namespace rtev
