// SPDX-License-Identifier: MIT
// Writes traces in the Fuchsia trace format, which Perfetto, magic-trace and other viewers open.
//
//   rtev::FxtWriter trace{destination};
//   const auto minor = trace.compose(rtev::fxt::duration_begin, trace.thread(pid, tid), trace.intern("gc"),
//                                    trace.intern("minor"));
//   trace.write(minor, now_ns);  // 16 bytes
//   trace.flush();
//   if (trace.error()) return report(*trace.error());
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "rtev/error.hpp"
#include "rtev/fxt.hpp"
#include "rtev/fxt_destination.hpp"
#include "rtev/fxt_encode.hpp"
#include "rtev/fxt_event.hpp"
#include "rtev/fxt_records.hpp"

namespace rtev {

namespace fxt {

/// What became of a record. A refused one leaves no byte, and the trace goes on without it.
enum class Status : std::uint8_t {
  written,
  wrong_arguments,  ///< refused: not what the event was composed for, or it could not be composed
  over_limit,       ///< refused: too many arguments, too long a text, too large a record, no such slot or provider
  failed,           ///< the destination failed, or the writer's options are wrong: nothing is written any more
};

std::string_view to_string(Status status);

class WriterState;
class RecordSize;
enum class KnownName : std::uint8_t;

}  // namespace fxt

/// Writes records one after the other into the buffers of a destination. Not thread-safe.
///
/// Whatever is named by reference is defined in the trace before it is used. A reference is good under the provider it
/// was made under, and until its slot is used for something else: see each function. Those that make references give
/// the empty string or ThreadRef{} when they refuse or fail; records with such a thread are refused.
///
/// Viewers want spans of a thread to nest, and ends written before begins of the same time; see also fxt_records.hpp.
class FxtWriter {
 public:
  struct Options {
    std::uint32_t provider_id = 1;
    std::string provider_name = "rtev";  ///< 255 bytes or less
    /// Unit of all times. Viewers round anything but the default, ns, and count on CLOCK_MONOTONIC or CLOCK_BOOTTIME.
    std::uint64_t ticks_per_second = fxt::default_ticks_per_second;
    /// Slots 1 to this are for set_string(), and for set_thread().
    std::uint16_t fixed_strings = 16;
    std::uint8_t fixed_threads = 16;
    /// The next slots are for temporary(), all further ones for intern() and for thread().
    std::uint16_t temporary_strings = 128;
    /// Bytes of text that intern() remembers; beyond it acts as if its slots were used up.
    std::size_t interned_bytes = std::size_t{64} << 20;
  };

  /// Writes the magic number, the provider and its ticks, in the order that viewers want. `destination` must outlive
  /// the writer. Options out of range are an error() and nothing is written.
  explicit FxtWriter(FxtDestination& destination) : FxtWriter(destination, Options{}) {}
  FxtWriter(FxtDestination& destination, const Options& options);
  FxtWriter(const FxtWriter&) = delete;
  FxtWriter& operator=(const FxtWriter&) = delete;
  /// Flushes; who wants to know how that went calls flush() before.
  ~FxtWriter();

  /// Hands everything to the destination.
  fxt::Status flush();
  /// Of the destination, if it failed; else the first refusal, which tells of a mistake in the caller's code or data.
  const std::optional<Error>& error() const { return error_; }
  /// True once nothing is written any more.
  bool failed() const { return failed_; }
  /// Records that were refused.
  std::uint64_t refused() const { return refused_; }

  // -- Strings. Text of any bytes, max_string_bytes at most; the empty text needs no slot.

  /// The same text gives the same reference, for good. Once slots (or Options::interned_bytes) are used up, further
  /// texts get a temporary() reference; is_lasting() tells.
  fxt::StringRef intern(std::string_view text);
  /// Of the slots that are used in turns: good until Options::temporary_strings more are asked for.
  fxt::StringRef temporary(std::string_view text);
  /// Defines or replaces the text of a slot, 1 to Options::fixed_strings.
  fxt::StringRef set_string(std::uint16_t slot, std::string_view text);
  /// True for the empty string and for references that intern() gave for good.
  bool is_lasting(fxt::StringRef ref) const;

  // -- Threads.

  /// The same thread gives the same reference as long as it stays in use: with more threads than slots, the one not
  /// asked for the longest makes room. A reference is thus good until 254 - Options::fixed_threads other threads were
  /// asked for. Whoever knows more threads than that asks again for each record, or sets slots itself.
  fxt::ThreadRef thread(std::uint64_t pid, std::uint64_t tid);
  /// Defines or replaces the thread of a slot, 1 to Options::fixed_threads.
  fxt::ThreadRef set_thread(std::uint8_t slot, std::uint64_t pid, std::uint64_t tid);

  // -- Names of processes and threads, by kernel objects. Viewers keep the last one. Not for the idle task.

  fxt::Status name_process(std::uint64_t pid, fxt::Text name, std::span<const fxt::Argument> further = {});
  fxt::Status name_thread(std::uint64_t pid, std::uint64_t tid, fxt::Text name,
                          std::span<const fxt::Argument> further = {});

  // -- Events composed ahead: the fast path.

  /// An event to be written with values for these parameters, in this order. References must be those of slots. Errors:
  /// inline references, more than 15 parameters; the event is then refused by write().
  fxt::ComposedEvent compose(fxt::EventType type, fxt::ThreadRef thread, fxt::StringRef category, fxt::StringRef name,
                             std::span<const fxt::Parameter> parameters);
  fxt::ComposedEvent compose(fxt::EventType type, fxt::ThreadRef thread, fxt::StringRef category, fxt::StringRef name,
                             std::initializer_list<fxt::Parameter> parameters = {}) {
    return compose(type, thread, category, name, std::span(parameters.begin(), parameters.size()));
  }

  /// Writes an event. Values must have exactly the types of the parameters (see fxt::argument_type_of): an int is no
  /// int64. Text and blobs go into the record. Allocates nothing.
  template <fxt::ArgumentValue... Values>
  fxt::Status write(const fxt::ComposedEvent& event, std::uint64_t time, const Values&... values) {
    return put_event<false>(event, fxt::signature_of<Values...>(), time, 0, values...);
  }
  /// The same for events with an extra word: write(heap, now, fxt::CounterId{7}, words).
  template <fxt::ExtraWord Extra, fxt::ArgumentValue... Values>
  fxt::Status write(const fxt::ComposedEvent& event, std::uint64_t time, Extra extra, const Values&... values) {
    constexpr fxt::Signature given = fxt::signature_part<Extra>() | fxt::signature_of<Values...>();
    return put_event<true>(event, given, time, extra.value, values...);
  }

  // -- Records of any shape. They allocate nothing either.

  fxt::Status write(const fxt::EventRecord& record, std::span<const fxt::Argument> arguments = {});
  fxt::Status write(const fxt::ContextSwitch& record, std::span<const fxt::Argument> further = {});
  fxt::Status write(const fxt::LegacySwitch& record);
  fxt::Status write(const fxt::Wakeup& record, std::span<const fxt::Argument> further = {});
  fxt::Status write(const fxt::KernelObject& record, std::span<const fxt::Argument> arguments = {});
  fxt::Status write(const fxt::UserspaceObject& record, std::span<const fxt::Argument> arguments = {});
  fxt::Status write(const fxt::BlobRecord& record);
  fxt::Status write(const fxt::LogRecord& record);
  template <typename Record>
  fxt::Status write(const Record& record, std::initializer_list<fxt::Argument> arguments) {
    return write(record, std::span(arguments.begin(), arguments.size()));
  }

  // -- Providers: each has strings, threads and ticks of its own.

  /// Adds a provider and writes for it from now on. An id that is taken is refused.
  fxt::Status add_provider(std::uint32_t id, std::string_view name,
                           std::uint64_t ticks_per_second = fxt::default_ticks_per_second);
  /// Writes for a provider that was added before; an unknown one is refused, since viewers drop all that follows.
  fxt::Status select_provider(std::uint32_t id);
  /// Says that the current provider ran out of buffer and lost records. Perfetto does not show it.
  fxt::Status buffer_full();

 private:
  template <bool has_extra, fxt::ArgumentValue... Values>
  fxt::Status put_event(const fxt::ComposedEvent& event, fxt::Signature given, std::uint64_t time, std::uint64_t extra,
                        const Values&... values) {
    if (event.signature_ != given) [[unlikely]]
      return refuse_arguments(event, given);
    std::size_t words = 2 + has_extra + (fxt::encode::fixed_words(fxt::argument_type_of<Values>()) + ... + 0);
    std::uint64_t header = event.header_;
    if constexpr ((fxt::TextLike<Values> || ...)) {
      if ((fxt::encode::is_dangling(values) || ...)) [[unlikely]]
        return refuse_dangling(event);
    }
    if constexpr ((fxt::encode::is_stream<Values> || ...)) {
      const std::size_t added = (fxt::encode::added_words(values) + ... + 0);
      words += added;
      if (words > fxt::max_record_words) [[unlikely]]
        return refuse_size(event);
      header += added << 4;
    }
    if (!reserve(words)) [[unlikely]]
      return fxt::Status::failed;
    std::uint64_t* out = std::exchange(next_, next_ + words);
    out[0] = header;
    out[1] = time;
    out += 2;
    if constexpr (sizeof...(Values) > 0) {
      const std::uint64_t* argument = event.arguments_;
      ((out = fxt::encode::put_argument(out, *argument++, values)), ...);
    }
    if constexpr (has_extra) *out = extra;
    return fxt::Status::written;
  }

  /// True if there is room for a record at next_; false once the destination has failed.
  bool reserve(std::size_t words) { return words <= static_cast<std::size_t>(end_ - next_) || refill(words); }
  bool refill(std::size_t words);
  bool hand_over();
  void fail(Error error);

  fxt::Status introduce_provider(std::uint32_t id, std::string_view name, std::uint64_t ticks_per_second);
  bool define_string(std::uint16_t slot, std::string_view text);
  void define_thread(std::uint8_t slot, std::uint64_t pid, std::uint64_t tid);
  fxt::Text known_name(fxt::KnownName name);
  template <typename Fill>
  fxt::Status put_record(std::string_view what, const fxt::RecordSize& size, Fill fill);
  fxt::Status put_kernel_object(const fxt::KernelObject& record, std::span<const fxt::Argument> first,
                                std::span<const fxt::Argument> further);

  fxt::Status refuse_arguments(const fxt::ComposedEvent& event, fxt::Signature given);
  fxt::Status refuse_dangling(const fxt::ComposedEvent& event);
  fxt::Status refuse_size(const fxt::ComposedEvent& event);
  template <typename Why>
  fxt::Status refuse_event(fxt::Status status, const fxt::ComposedEvent& event, Why why);
  /// Data that is refused may come at any rate, so the error is put into words only if it is kept.
  template <typename MakeError>
  fxt::Status refuse(fxt::Status status, MakeError make_error) {
    if (failed_) return fxt::Status::failed;
    ++refused_;
    if (!error_) error_ = make_error();
    return status;
  }
  std::string name_of(fxt::StringRef ref) const;

  std::uint64_t* next_ = nullptr;  ///< of the buffer from begin_ to end_
  std::uint64_t* end_ = nullptr;
  std::uint64_t* begin_ = nullptr;
  FxtDestination& destination_;
  std::unique_ptr<fxt::WriterState> state_;
  std::uint64_t refused_ = 0;
  bool failed_ = false;
  std::optional<Error> error_;
};

}  // namespace rtev
