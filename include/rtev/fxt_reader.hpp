// SPDX-License-Identifier: MIT
// Reads traces in the Fuchsia Trace Format, record by record, and refuses what the format does not allow.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

#include "rtev/error.hpp"
#include "rtev/fxt.hpp"
#include "rtev/fxt_records.hpp"

namespace rtev {
namespace fxt {

/// Records as they were read: the writer's look alike, but what these name is resolved, and views are of the reader's
/// memory.
namespace parsed {

/// A string and how the record referred to it. A slot means what it meant at the record's place in the file: slots are
/// used again.
struct Text {
  std::string_view text;
  StringRef ref{};

  bool operator==(const Text&) const = default;
};

/// A thread and how the record referred to it.
struct Thread {
  std::uint64_t pid = 0;
  std::uint64_t tid = 0;
  ThreadRef ref{};

  bool operator==(const Thread&) const = default;
};

/// In the order of ArgumentType.
using Value = std::variant<std::nullptr_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, double, Text,
                           Pointer, Koid, bool, Blob>;

struct Argument {
  Text name;
  Value value;

  ArgumentType type() const { return static_cast<ArgumentType>(value.index()); }
};
using Arguments = std::span<const Argument>;

/// The argument of this name; nullptr if there is none. What a record gives twice, counts as it was given first.
const Argument* find(Arguments arguments, std::string_view name);

/// A provider introduces itself, and what follows is its. It begins without strings, threads and ticks of its own, also
/// where it was known before.
struct ProviderInfo {
  std::uint32_t id = 0;
  std::string_view name;
};
/// What follows is this provider's: strings, threads and ticks are as they were when it was left.
struct ProviderSection {
  std::uint32_t id = 0;
};
struct ProviderEventRecord {
  std::uint32_t id = 0;
  ProviderEvent event{};  ///< may be one that the enumeration does not know
};

struct Initialization {
  /// An addition of the Jane Street writer: the wall clock (ns since 1970) at one of the ticks.
  struct Base {
    std::uint64_t time;
    std::uint64_t wall_ns;
    bool operator==(const Base&) const = default;
  };
  std::uint64_t ticks_per_second = 0;  ///< never 0
  std::optional<Base> base;
};

/// From here on the slot means this string.
struct StringRecord {
  std::uint16_t slot = 0;
  std::string_view text;
};
/// From here on the slot means this thread.
struct ThreadRecord {
  std::uint8_t slot = 0;
  std::uint64_t pid = 0;
  std::uint64_t tid = 0;
};

// Times are in ticks.

struct EventRecord {
  EventType type{};
  std::uint64_t time = 0;
  Thread thread;
  Text category;
  Text name;
  Arguments arguments;
  std::uint64_t extra = 0;  ///< counter id, end time, async id or flow id; 0 for types without an extra word
};

struct BlobRecord {
  BlobType type{};  ///< may be one that the enumeration does not know
  Text name;
  std::span<const std::byte> payload;
};

struct UserspaceObject {
  std::uint64_t address = 0;
  Thread process;  ///< without a tid where it is inline
  Text name;
  Arguments arguments;
};
struct KernelObject {
  KernelObjectType type{};  ///< may be one that the enumeration does not know
  std::uint64_t koid = 0;
  Text name;
  Arguments arguments;
};

struct ContextSwitch {
  std::uint64_t time = 0;
  std::uint16_t cpu = 0;
  std::uint64_t outgoing_tid = 0;
  ThreadState outgoing_state{};
  std::uint64_t incoming_tid = 0;
  Arguments arguments;  ///< `outgoing_weight` and `incoming_weight`, if there are weights
};
struct LegacySwitch {
  std::uint64_t time = 0;
  std::uint8_t cpu = 0;
  Thread outgoing;
  ThreadState outgoing_state{};
  std::uint8_t outgoing_priority = 0;
  Thread incoming;
  std::uint8_t incoming_priority = 0;
};
struct Wakeup {
  std::uint64_t time = 0;
  std::uint16_t cpu = 0;
  std::uint64_t tid = 0;
  Arguments arguments;  ///< `weight` and `waker`, if they are known
};

struct LogRecord {
  std::uint64_t time = 0;
  Thread thread;
  std::string_view message;
};

/// Of a type, or a subtype, that is not one of the above: it was skipped by its size.
struct UnknownRecord {
  RecordType type{};                 ///< may be one that the enumeration does not know
  std::span<const std::byte> bytes;  ///< all of it, with its header
};

}  // namespace parsed

/// One record. What its views show is valid while the consumer looks at it.
using Record =
    std::variant<parsed::UnknownRecord, parsed::ProviderInfo, parsed::ProviderSection, parsed::ProviderEventRecord,
                 parsed::Initialization, parsed::StringRecord, parsed::ThreadRecord, parsed::EventRecord,
                 parsed::BlobRecord, parsed::UserspaceObject, parsed::KernelObject, parsed::ContextSwitch,
                 parsed::LegacySwitch, parsed::Wakeup, parsed::LogRecord>;

/// Ticks as nanoseconds, rounded down; UINT64_MAX where they are too many. `ticks_per_second` is not 0.
constexpr std::uint64_t to_nanoseconds(std::uint64_t ticks, std::uint64_t ticks_per_second) {
  constexpr std::uint64_t per_second = default_ticks_per_second;
  if (ticks_per_second == per_second) return ticks;
  const auto exact = static_cast<unsigned __int128>(ticks) * per_second / ticks_per_second;
  return exact > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(exact);
}

}  // namespace fxt

/// Reader of one trace, which comes in pieces of any size. Strict: it takes no record for what it might have meant.
/// An error names the byte, the record and the reason, and ends the reading. Memory is bounded whatever the bytes are.
/// One thread at a time may use a reader; different readers are independent.
class FxtReader {
 public:
  FxtReader();
  FxtReader(FxtReader&&) noexcept;
  FxtReader& operator=(FxtReader&&) noexcept;
  ~FxtReader();

  /// Strings of all providers together may need this much memory, with what it takes to find them.
  static constexpr std::size_t max_table_bytes = std::size_t{256} << 20;
  static constexpr std::size_t max_providers = 256;

  enum class Fed {
    all,      ///< give more, or finish()
    stopped,  ///< the consumer has enough: no byte is looked at from here on
  };
  /// Reads the next bytes of the trace and calls `consumer` with every record that is whole with them, in the file's
  /// order and without the magic number. It may return false to read no more; it must not feed the reader. Records are
  /// read where the bytes lie; only one that the bytes cut is kept for the next call. Once it has failed, it fails the
  /// same way again.
  template <std::invocable<const fxt::Record&> Consumer>
  Result<Fed> feed(std::span<const std::byte> bytes, Consumer&& consumer) {
    auto call = [&](const fxt::Record& record) {
      if constexpr (std::same_as<std::invoke_result_t<Consumer&, const fxt::Record&>, bool>) {
        return consumer(record);
      } else {
        consumer(record);
        return true;
      }
    };
    return feed_bytes(bytes, call_back<decltype(call)>, &call);
  }

  /// How a trace ended.
  struct End {
    std::uint64_t offset = 0;    ///< where its last whole record ended
    std::size_t bytes_left = 0;  ///< after that: the beginning of a record whose rest is missing
    /// The trace was cut short, as by a recorder that was killed. What was read before stands.
    bool cut() const { return bytes_left != 0; }
  };
  /// There are no more bytes. Fails if reading failed, or if there was not even a magic number's beginning.
  Result<End> finish() const;

  // What holds for the record that the consumer looks at, or else for the next one.
  /// Its place in the trace, in bytes.
  std::uint64_t offset() const;
  /// Its provider; 0 where none was named.
  std::uint32_t provider() const;
  /// Of its provider.
  std::uint64_t ticks_per_second() const;
  std::uint64_t nanoseconds(std::uint64_t ticks) const { return fxt::to_nanoseconds(ticks, ticks_per_second()); }

 private:
  using Call = bool (*)(void*, const fxt::Record&);
  template <typename Function>
  static bool call_back(void* function, const fxt::Record& record) {
    return (*static_cast<Function*>(function))(record);
  }
  Result<Fed> feed_bytes(std::span<const std::byte> bytes, Call call, void* consumer);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rtev
