// SPDX-License-Identifier: MIT
// Records of the trace format as values, for FxtWriter's general path: what they name may be inline, arguments vary.
// Nothing in here owns text or bytes; all of it has to live until the record is written.
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

/// A string of a record: a reference into the string table, or text that goes into the record.
class Text {
 public:
  constexpr Text() = default;
  constexpr Text(StringRef ref) : ref_(ref) {}                // NOLINT(google-explicit-constructor)
  constexpr Text(std::string_view text) : inline_(text) {}    // NOLINT(google-explicit-constructor)
  constexpr Text(const char* text) : inline_(text) {}         // NOLINT(google-explicit-constructor)
  constexpr Text(const std::string& text) : inline_(text) {}  // NOLINT(google-explicit-constructor)

  /// Empty where the text is inline.
  constexpr StringRef ref() const { return ref_; }
  constexpr std::string_view inline_text() const { return inline_; }

 private:
  StringRef ref_{};
  std::string_view inline_{};
};

/// A thread of a record: a reference into the thread table, or pid and tid that go into the record.
class Thread {
 public:
  constexpr Thread(ThreadRef ref) : ref_(ref) {}  // NOLINT(google-explicit-constructor)
  constexpr Thread(std::uint64_t pid, std::uint64_t tid) : pid_(pid), tid_(tid), inline_(true) {}

  /// Neither this nor a ref() is the case of Thread(ThreadRef{}), which the writer refuses.
  constexpr bool is_inline() const { return inline_; }
  constexpr ThreadRef ref() const { return ref_; }
  constexpr std::uint64_t pid() const { return pid_; }
  constexpr std::uint64_t tid() const { return tid_; }

 private:
  ThreadRef ref_{};
  std::uint64_t pid_ = 0, tid_ = 0;
  bool inline_ = false;
};

/// Values of arguments that no type of C++ tells apart.
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
concept ArgumentValue = std::same_as<T, std::nullptr_t> || (std::integral<T> && sizeof(T) <= 8) ||
                        std::same_as<T, float> || std::same_as<T, double> || TextLike<T> || std::same_as<T, Pointer> ||
                        std::same_as<T, Koid> || std::same_as<T, Blob>;

/// Argument type of a type of C++. Integers go by sign and size: up to 32 bits, and 64 bits.
template <ArgumentValue T>
consteval ArgumentType argument_type_of() {
  using enum ArgumentType;
  if constexpr (std::same_as<T, std::nullptr_t>)
    return null;
  else if constexpr (std::same_as<T, bool>)
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

/// A value that takes a whole word, as that word; smaller integers, too, zero-extended from their 32 bits.
template <ArgumentValue T>
constexpr std::uint64_t value_bits(T value) {
  if constexpr (std::same_as<T, std::nullptr_t>)
    return 0;
  else if constexpr (std::signed_integral<T> && sizeof(T) <= 4)
    return static_cast<std::uint32_t>(std::int32_t{value});
  else if constexpr (std::integral<T>)
    return static_cast<std::uint64_t>(value);
  else if constexpr (std::floating_point<T>)
    return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  else if constexpr (std::same_as<T, Pointer>)
    return value.address;
  else if constexpr (std::same_as<T, Koid>)
    return value.id;
  else
    static_assert(sizeof(T) == 0, "text and blobs are no words");
}

/// The value of an argument: made from nullptr, bool, integers, double, text, StringRef, Pointer, Koid, Blob.
class Value {
 public:
  template <ArgumentValue T>
  constexpr Value(T value) : type_(argument_type_of<T>()) {  // NOLINT(google-explicit-constructor)
    if constexpr (TextLike<T>)
      text_ = value;
    else if constexpr (std::same_as<T, Blob>)
      blob_ = value.bytes;
    else
      bits_ = value_bits(value);
  }
  /// So that a std::string is not copied.
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

/// Collects arguments without allocating. More than max_arguments are kept as one too many, which the writer refuses.
class Arguments {
 public:
  Arguments& add(Text name, Value value) {
    if (size_ < storage_.all.size()) std::construct_at(&storage_.all[size_++], name, value);
    return *this;
  }
  void clear() { size_ = 0; }
  operator std::span<const Argument>() const { return {storage_.all.data(), size_}; }  // NOLINT

 private:
  // Nobody pays for the arguments that are not there.
  union Storage {
    Storage() {}  // NOLINT(modernize-use-equals-default): that one would be deleted
    std::array<Argument, max_arguments + 1> all;
  } storage_;
  std::size_t size_ = 0;
};

// The records. Times are in ticks (see FxtWriter::Options), tids and pids are ids of kernel objects. Arguments are
// given beside them, in an Arguments or a list: writer.write(fxt::LogRecord{…}), writer.write(fxt::EventRecord{…},
// {{"n", 1}}).

struct EventRecord {
  EventType type = EventType::instant;
  std::uint64_t time = 0;
  Thread thread;
  Text category{};
  Text name{};
  std::uint64_t extra = 0;  ///< counter id, end time, async id or flow id; must be 0 for types without an extra word
};

/// A CPU goes from one thread to another. Weights are left out of the record if there are none; the idle task has tid 0
/// and must have idle_weight, or viewers take it for a thread.
struct ContextSwitch {
  std::uint64_t time = 0;
  std::uint16_t cpu = 0;
  std::uint64_t outgoing_tid = 0;
  ThreadState outgoing_state = ThreadState::running;
  std::optional<std::int32_t> outgoing_weight{};
  std::uint64_t incoming_tid = 0;
  std::optional<std::int32_t> incoming_weight{};
};

/// As it was before 2023, for older viewers: cpu of 8 bits, no arguments. The idle task has pid 0 and priority 0.
struct LegacySwitch {
  std::uint64_t time = 0;
  std::uint8_t cpu = 0;
  Thread outgoing;
  ThreadState outgoing_state = ThreadState::running;
  std::uint8_t outgoing_priority = 0;
  Thread incoming;
  std::uint8_t incoming_priority = 0;
};

/// A thread becomes runnable. Weight and waker are left out of the record if there are none.
struct Wakeup {
  std::uint64_t time = 0;
  std::uint16_t cpu = 0;
  std::uint64_t tid = 0;
  std::optional<std::int32_t> weight{};
  std::optional<std::uint64_t> waker_tid{};
};

/// Facts about a kernel object. Processes and threads are best named by FxtWriter::name_process and name_thread.
struct KernelObject {
  KernelObjectType type = KernelObjectType::process;
  std::uint64_t koid = 0;
  Text name{};
};

struct UserspaceObject {
  std::uint64_t address = 0;
  /// The process it lives in, by any of its threads; inline, only the pid is written.
  Thread process;
  Text name{};
};

struct BlobRecord {
  BlobType type = BlobType::data;
  Text name{};
  std::span<const std::byte> payload{};
};

struct LogRecord {
  std::uint64_t time = 0;
  Thread thread;
  std::string_view message{};
};

}  // namespace rtev::fxt
