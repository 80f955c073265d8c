// SPDX-License-Identifier: MIT
// Reads the named arguments of a record.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "rtev/error.hpp"
#include "rtev/fxt_reader.hpp"
#include "stream/recording_layout.hpp"

namespace rtev::record {

namespace parsed = fxt::parsed;

inline std::unexpected<Error> bad_recording(std::string why) {
  return std::unexpected(Error{.what = "cannot read recording", .why = std::move(why)});
}

/// Looks up arguments by name. An argument that is missing, or of another type or range, yields 0 or an empty value,
/// and complete() is false from then on.
class Values {
 public:
  explicit Values(parsed::Arguments arguments) : arguments_(arguments) {}

  template <std::integral Number>
  Number number(std::string_view name) {
    if (const parsed::Argument* const argument = parsed::find(arguments_, name)) {
      if (const auto value = std::visit([](const auto& v) { return as<Number>(v); }, argument->value)) return *value;
    }
    complete_ = false;
    return 0;
  }
  bool boolean(std::string_view name) {
    if (const bool* const value = get<bool>(name)) return *value;
    complete_ = false;
    return false;
  }
  std::string text(std::string_view name) {
    if (const auto* const value = get<parsed::Text>(name)) return std::string(value->text);
    complete_ = false;
    return {};
  }
  /// Reads a field (see recording_layout.hpp): a number, a bool, a text or an enumerator.
  template <typename T>
  void operator()(std::string_view name, T& value) {
    if constexpr (std::is_enum_v<T>) {
      const auto number = this->number<std::uint32_t>(name);
      complete_ &= number <= static_cast<std::uint32_t>(last_of(T{}));
      value = complete_ ? static_cast<T>(number) : T{};
    } else if constexpr (std::same_as<T, bool>) {
      value = boolean(name);
    } else if constexpr (std::integral<T>) {
      value = number<T>(name);
    } else {
      value = text(name);
    }
  }

  bool has(std::string_view name) const { return parsed::find(arguments_, name) != nullptr; }
  /// Null if there is none with this name and type.
  template <typename T>
  const T* get(std::string_view name) const {
    const parsed::Argument* const argument = parsed::find(arguments_, name);
    return argument != nullptr ? std::get_if<T>(&argument->value) : nullptr;
  }

  /// True if all required arguments were there.
  bool complete() const { return complete_; }

 private:
  template <typename Number, typename T>
  static std::optional<Number> as(const T& value) {
    if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      if (std::in_range<Number>(value)) return static_cast<Number>(value);
    }
    return std::nullopt;
  }

  parsed::Arguments arguments_;
  bool complete_ = true;
};

}  // namespace rtev::record
