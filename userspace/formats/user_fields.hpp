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

class UserFields {
 public:
  static constexpr std::size_t most = 4;  ///< fields of one event

  const UserField* begin() const { return fields_.data(); }
  const UserField* end() const { return fields_.data() + count_; }
  bool empty() const { return count_ == 0; }
  void add(const UserField& field) { fields_.at(count_++) = field; }

 private:
  std::array<UserField, most> fields_{};
  std::size_t count_ = 0;
};

/// The fields of the payload of a custom event with this name. None if no known library writes such an event, or if the
/// payload is not what the library writes: another length, or a number where it has no meaning.
UserFields user_fields(std::string_view event, std::span<const std::byte> payload);

/// `id=5 name="main"`. Texts are escaped and cut at `longest_text` bytes.
void add_user_fields(TextBuffer& out, const UserFields& fields, std::size_t longest_text);

}  // namespace rtev
