// SPDX-License-Identifier: MIT
// Argument values for FxtWriter, and its records other than events. Nothing in here owns text or bytes: they must live
// until the record is written.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rtev/fxt.hpp"

namespace rtev::fxt {

/// A string of a record: a slot of the string table, or text that is written into the record (inline).
class Text {
 public:
  constexpr Text() = default;
  constexpr Text(StringRef ref) : ref_(ref) {}                // NOLINT(google-explicit-constructor)
  constexpr Text(std::string_view text) : inline_(text) {}    // NOLINT(google-explicit-constructor)
  constexpr Text(const char* text) : inline_(text) {}         // NOLINT(google-explicit-constructor)
  constexpr Text(const std::string& text) : inline_(text) {}  // NOLINT(google-explicit-constructor)

  /// Empty if the text is inline.
  constexpr StringRef ref() const { return ref_; }
  constexpr std::string_view inline_text() const { return inline_; }

 private:
  StringRef ref_{};
  std::string_view inline_{};
};

/// Argument values that C++ has no type for.
struct Pointer {
  std::uint64_t address;
};
struct Koid {
  std::uint64_t id;
};
struct Blob {
  std::span<const std::byte> bytes;
};

template <typename T>
concept TextLike = std::convertible_to<T, std::string_view> || std::same_as<T, StringRef> || std::same_as<T, Text>;

template <typename T>
concept ArgumentValue = (std::integral<T> && sizeof(T) <= 8) || std::same_as<T, float> || std::same_as<T, double> ||
                        TextLike<T> || std::same_as<T, Pointer> || std::same_as<T, Koid> || std::same_as<T, Blob>;

/// The argument type of a C++ type. Integers are 32-bit or 64-bit by their size, signed or unsigned.
template <ArgumentValue T>
consteval ArgumentType argument_type_of() {
  using enum ArgumentType;
  if constexpr (std::same_as<T, bool>)
    return boolean;
  else if constexpr (std::integral<T> && sizeof(T) <= 4)
    return std::signed_integral<T> ? int32 : uint32;
  else if constexpr (std::integral<T>)
    return std::signed_integral<T> ? int64 : uint64;
  else if constexpr (std::floating_point<T>)
    return floating;
  else if constexpr (std::same_as<T, Pointer>)
    return pointer;
  else if constexpr (std::same_as<T, Koid>)
    return koid;
  else if constexpr (std::same_as<T, Blob>)
    return blob;
  else
    return string;
}

namespace detail {
/// A value other than a text or blob as a word; integers of up to 32 bits are zero-extended from 32 bits.
template <ArgumentValue T>
constexpr std::uint64_t value_bits(T value) {
  if constexpr (std::signed_integral<T> && sizeof(T) <= 4)
    return static_cast<std::uint32_t>(std::int32_t{value});
  else if constexpr (std::integral<T>)
    return static_cast<std::uint64_t>(value);
  else if constexpr (std::floating_point<T>)
    return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  else if constexpr (std::same_as<T, Pointer>)
    return value.address;
  else
    return value.id;
}
}  // namespace detail

/// The value of an argument: made of bool, an integer, a double, text, a StringRef, Pointer, Koid or Blob.
class Value {
 public:
  template <ArgumentValue T>
  constexpr Value(T value) : type_(argument_type_of<T>()) {  // NOLINT(google-explicit-constructor)
    if constexpr (TextLike<T>)
      text_ = value;
    else if constexpr (std::same_as<T, Blob>)
      blob_ = value.bytes;
    else
      bits_ = detail::value_bits(value);
  }
  /// Does not copy the string.
  constexpr Value(const std::string& text) : type_(ArgumentType::string), text_(text) {}  // NOLINT

  constexpr ArgumentType type() const { return type_; }
  constexpr std::uint64_t bits() const { return bits_; }
  constexpr const Text& text() const { return text_; }
  constexpr std::span<const std::byte> blob() const { return blob_; }

 private:
  ArgumentType type_;
  std::uint64_t bits_ = 0;
  Text text_{};
  std::span<const std::byte> blob_{};
};

struct Argument {
  Text name;
  Value value;
};

/// Collects arguments without allocating. Of more than max_arguments one is kept, so that the writer refuses the
/// record.
class Arguments {
 public:
  Arguments& add(Text name, Value value) {
    if (size_ < storage_.all.size()) std::construct_at(&storage_.all[size_++], name, value);
    return *this;
  }
  void clear() { size_ = 0; }
  operator std::span<const Argument>() const { return {storage_.all.data(), size_}; }  // NOLINT

 private:
  // Arguments that are not added are not constructed.
  union Storage {
    Storage() {}  // NOLINT(modernize-use-equals-default): that one would be deleted
    std::array<Argument, max_arguments + 1> all;
  } storage_;
  std::size_t size_ = 0;
};

// Records for FxtWriter::write(). Times are in ticks: ns unless FxtWriter::Options says otherwise.

/// A CPU switches from one thread to another. Weights that are not set are left out. The idle task has tid 0 and must
/// have idle_weight, otherwise viewers show it as a thread.
struct ContextSwitch {
  std::uint64_t time = 0;
  std::uint16_t cpu = 0;
  std::uint64_t outgoing_tid = 0;
  ThreadState outgoing_state = ThreadState::running;
  std::optional<std::int32_t> outgoing_weight{};
  std::uint64_t incoming_tid = 0;
  std::optional<std::int32_t> incoming_weight{};
};

/// A thread becomes runnable. A weight or waker that is not set is left out.
struct Wakeup {
  std::uint64_t time = 0;
  std::uint16_t cpu = 0;
  std::uint64_t tid = 0;
  std::optional<std::int32_t> weight{};
  std::optional<std::uint64_t> waker_tid{};
};

/// Data about an object of a process. Viewers ignore it; rtev-bpf keeps its metadata in such records.
struct UserspaceObject {
  std::uint64_t address = 0;
  ThreadRef process{};    ///< any thread of the process; if inline, `pid` is written instead
  std::uint64_t pid = 0;  ///< ignored if `process` is a slot
  Text name{};
};

}  // namespace rtev::fxt
