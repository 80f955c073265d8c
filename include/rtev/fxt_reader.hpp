// SPDX-License-Identifier: MIT
// Reads traces in the Fuchsia trace format, record by record. Invalid records are errors.
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

/// Records with resolved references. Views refer to the reader's memory or to the bytes that were fed.
namespace parsed {

/// A string, and how the record refers to it. A slot has the meaning it had at the record's place in the file, because
/// slots are reused.
struct Text {
  std::string_view text;
  StringRef ref{};

  bool operator==(const Text&) const = default;
};

/// A thread, and how the record refers to it.
struct Thread {
  std::uint64_t pid = 0;
  std::uint64_t tid = 0;
  ThreadRef ref{};

  bool operator==(const Thread&) const = default;
};

/// In the order of ArgumentType.
using Value =
    std::variant<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, double, Text, Pointer, Koid, bool, Blob>;

struct Argument {
  Text name;
  Value value;

  ArgumentType type() const { return static_cast<ArgumentType>(value.index() + 1); }
};
using Arguments = std::span<const Argument>;

/// The first argument of this name; nullptr if there is none.
const Argument* find(Arguments arguments, std::string_view name);

/// The provider of the records that follow. String table, thread table and ticks are reset.
struct ProviderInfo {
  std::uint32_t id = 0;
  std::string_view name;
};
/// Selects the provider of the records that follow. FxtReader supports one provider: it must be the current one.
struct ProviderSection {
  std::uint32_t id = 0;
};
/// The provider's buffer was full: events are missing.
struct BufferFull {
  std::uint32_t id = 0;
};

struct Initialization {
  /// An extension of Jane Street's writer: the wall clock (ns since 1970) at one of the ticks.
  struct Base {
    std::uint64_t time;
    std::uint64_t wall_ns;
    bool operator==(const Base&) const = default;
  };
  std::uint64_t ticks_per_second = 0;  ///< never 0
  std::optional<Base> base;
};

/// Defines a slot for the records that follow.
struct StringRecord {
  std::uint16_t slot = 0;
  std::string_view text;
};
struct ThreadRecord {
  std::uint8_t slot = 0;
  std::uint64_t pid = 0;
  std::uint64_t tid = 0;
};

// Times are in ticks: see FxtReader::nanoseconds().

struct EventRecord {
  EventType type{};
  std::uint64_t time = 0;
  Thread thread;
  Text category;
  Text name;
  Arguments arguments;
  std::uint64_t extra = 0;  ///< counter id, end time, async id or flow id; 0 for types without an extra word
};

struct UserspaceObject {
  std::uint64_t address = 0;
  Thread process;  ///< without tid if it is inline
  Text name;
  Arguments arguments;
};
struct KernelObject {
  KernelObjectType type{};  ///< may be one that is not in the enumeration
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
struct Wakeup {
  std::uint64_t time = 0;
  std::uint16_t cpu = 0;
  std::uint64_t tid = 0;
  Arguments arguments;  ///< `weight` and `waker`, if they are known
};

/// A record of another type or subtype, which was skipped.
struct UnknownRecord {
  unsigned type = 0;                 ///< bits 0 to 3 of its header
  std::span<const std::byte> bytes;  ///< the whole record, with its header
};

}  // namespace parsed

/// One record. Its views are valid until the consumer returns.
using Record = std::variant<parsed::UnknownRecord, parsed::ProviderInfo, parsed::ProviderSection, parsed::BufferFull,
                            parsed::Initialization, parsed::StringRecord, parsed::ThreadRecord, parsed::EventRecord,
                            parsed::UserspaceObject, parsed::KernelObject, parsed::ContextSwitch, parsed::Wakeup>;

/// Ticks as nanoseconds, rounded down; UINT64_MAX if they do not fit. `ticks_per_second` must not be 0.
constexpr std::uint64_t to_nanoseconds(std::uint64_t ticks, std::uint64_t ticks_per_second) {
  constexpr std::uint64_t per_second = default_ticks_per_second;
  if (ticks_per_second == per_second) return ticks;
  const auto exact = static_cast<unsigned __int128>(ticks) * per_second / ticks_per_second;
  return exact > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(exact);
}

}  // namespace fxt

/// Reads one trace, which may be fed in pieces of any size. Strict: an invalid record is an error that names its place,
/// the record and the reason, and ends the reading. Memory is bounded for any input. One thread at a time may use a
/// reader; different readers are independent.
class FxtReader {
 public:
  FxtReader();
  FxtReader(FxtReader&&) noexcept;
  FxtReader& operator=(FxtReader&&) noexcept;
  ~FxtReader();

  /// Bytes that the strings of the table may have together; more are an error.
  static constexpr std::size_t max_table_bytes = std::size_t{256} << 20;

  enum class Fed {
    all,      ///< feed more, or call finish()
    stopped,  ///< the consumer returned false: further bytes are ignored
  };
  /// Reads the next bytes of the trace and calls `consumer(const fxt::Record&)` with every record that is complete with
  /// them, in the order of the file and without the magic number. The consumer may return false to stop; it must not
  /// call feed(). Records are read in place; only a record that the bytes cut is copied. After an error every call
  /// returns the same error.
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
    std::uint64_t offset = 0;    ///< end of the last complete record, in bytes
    std::size_t bytes_left = 0;  ///< bytes of an incomplete record after that
    /// The trace ends in the middle of a record, e.g. because its writer was killed. All records before are valid.
    bool cut() const { return bytes_left != 0; }
  };
  /// There are no more bytes. Fails if reading failed, or if there is not even the beginning of a magic number.
  Result<End> finish() const;

  // While the consumer runs, these refer to its record, otherwise to the next one.
  /// Place in the trace, in bytes.
  std::uint64_t offset() const;
  /// Id of the provider; 0 if none was named.
  std::uint32_t provider() const;
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
