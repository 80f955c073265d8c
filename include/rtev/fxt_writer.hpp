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
#include "rtev/fxt_event.hpp"
#include "rtev/fxt_records.hpp"

namespace rtev {

namespace fxt {

/// The result of writing a record. A refused record leaves no byte in the trace, and the writer continues.
enum class Status : std::uint8_t {
  written,
  wrong_arguments,  ///< refused: other values than the event was composed for, or it could not be composed
  over_limit,       ///< refused: too many arguments, too long a text, too large a record, no such slot
  failed,           ///< the destination failed, or the writer's options are wrong: nothing more is written
};

std::string_view to_string(Status status);  ///< for messages, e.g. "over a limit of the format"

class WriterState;
struct RecordParts;
enum class KnownName : std::uint8_t;

}  // namespace fxt

/// Writes records to a destination, one after the other. Not thread-safe.
///
/// The writer defines strings and threads in the trace before records refer to them. A reference stays valid until its
/// slot is reused: see each function. If a function that returns a reference refuses or fails, the reference is the
/// empty string or ThreadRef{}; events with such a thread are refused.
///
/// Viewers want the spans of a thread to be nested. At equal times, write ends before begins.
class FxtWriter {
 public:
  struct Options {
    std::uint32_t provider_id = 1;
    std::string provider_name = "rtev";  ///< at most 255 bytes
    /// Unit of all times. Viewers round other units than the default, ns, and expect CLOCK_MONOTONIC or CLOCK_BOOTTIME.
    std::uint64_t ticks_per_second = fxt::default_ticks_per_second;
    /// Slots 1 to this are for set_string() and set_thread().
    std::uint16_t fixed_strings = 16;
    std::uint8_t fixed_threads = 16;
    /// The next slots are for temporary(), all further ones for intern() and thread().
    std::uint16_t temporary_strings = 128;
    /// Bytes of text that intern() keeps. Beyond, it behaves as if its slots were used up.
    std::size_t interned_bytes = std::size_t{64} << 20;
  };

  /// Writes the magic number, the provider and its ticks. `destination` must outlive the writer. Invalid options are
  /// reported by error(), and nothing is written.
  explicit FxtWriter(FxtDestination& destination) : FxtWriter(destination, Options{}) {}
  FxtWriter(FxtDestination& destination, const Options& options);
  FxtWriter(const FxtWriter&) = delete;
  FxtWriter& operator=(const FxtWriter&) = delete;
  /// Flushes. Call flush() before to learn whether that succeeds.
  ~FxtWriter();

  /// Passes all records to the destination and flushes it.
  fxt::Status flush();
  /// The destination's error, if it failed; otherwise the first refusal, which shows a mistake in the caller's code or
  /// data.
  const std::optional<Error>& error() const { return error_; }
  /// True if nothing more is written.
  bool failed() const { return failed_; }
  /// Number of refused records.
  std::uint64_t refused() const { return refused_; }

  // Strings: any bytes, at most max_string_bytes. The empty string needs no slot.

  /// The same text gives the same reference, which stays valid. When all slots (or Options::interned_bytes) are used,
  /// new texts get a temporary() reference: see is_lasting().
  fxt::StringRef intern(std::string_view text);
  /// A reference that is valid until Options::temporary_strings more were requested.
  fxt::StringRef temporary(std::string_view text);
  /// Defines or replaces the text of a slot, 1 to Options::fixed_strings.
  fxt::StringRef set_string(std::uint16_t slot, std::string_view text);
  /// True if the reference stays valid: the empty string, and strings in slots of intern().
  bool is_lasting(fxt::StringRef ref) const;

  // Threads.

  /// A reference that is valid until 254 - Options::fixed_threads other threads were requested: the least recently
  /// requested thread loses its slot. A program with more threads has to request the reference for each record, or use
  /// set_thread().
  fxt::ThreadRef thread(std::uint64_t pid, std::uint64_t tid);
  /// Defines or replaces the thread of a slot, 1 to Options::fixed_threads.
  fxt::ThreadRef set_thread(std::uint8_t slot, std::uint64_t pid, std::uint64_t tid);

  // Names of processes and threads. Viewers keep the last one. Do not name the idle task, tid 0.

  fxt::Status name_process(std::uint64_t pid, fxt::Text name, std::span<const fxt::Argument> further = {});
  fxt::Status name_thread(std::uint64_t pid, std::uint64_t tid, fxt::Text name,
                          std::span<const fxt::Argument> further = {});

  // Events.

  /// Prepares an event to be written with values of these parameters, in this order. Refused, so that the event is not
  /// valid(): inline references, more than 15 parameters. The writer keeps 8 bytes for each parameter of each different
  /// list of parameters.
  fxt::ComposedEvent compose(fxt::EventType type, fxt::ThreadRef thread, fxt::StringRef category, fxt::StringRef name,
                             std::span<const fxt::Parameter> parameters);
  fxt::ComposedEvent compose(fxt::EventType type, fxt::ThreadRef thread, fxt::StringRef category, fxt::StringRef name,
                             std::initializer_list<fxt::Parameter> parameters = {}) {
    return compose(type, thread, category, name, std::span(parameters.begin(), parameters.size()));
  }

  /// Writes an event. The values must have exactly the types of the parameters (see fxt::argument_type_of): an int is
  /// an int32. Texts and blobs are copied into the record. Does not allocate.
  template <fxt::ArgumentValue... Values>
  fxt::Status write(const fxt::ComposedEvent& event, std::uint64_t time, const Values&... values) {
    return put_event<false>(event, fxt::detail::signature_of<Values...>(), time, 0, values...);
  }
  /// The same for events with an extra word: write(heap, now, fxt::CounterId{7}, words).
  template <fxt::ExtraWord Extra, fxt::ArgumentValue... Values>
  fxt::Status write(const fxt::ComposedEvent& event, std::uint64_t time, Extra extra, const Values&... values) {
    constexpr fxt::detail::Signature given =
        fxt::detail::signature_part<Extra>() | fxt::detail::signature_of<Values...>();
    return put_event<true>(event, given, time, extra.value, values...);
  }

  // Other records. Their arguments may have inline names and texts: write(fxt::Wakeup{...}, {{"n", 1}}). They do not
  // allocate, except to intern names that the format prescribes.

  fxt::Status write(const fxt::ContextSwitch& record, std::span<const fxt::Argument> further = {});
  fxt::Status write(const fxt::Wakeup& record, std::span<const fxt::Argument> further = {});
  fxt::Status write(const fxt::UserspaceObject& record, std::span<const fxt::Argument> arguments = {});
  template <typename Record>
  fxt::Status write(const Record& record, std::initializer_list<fxt::Argument> arguments) {
    return write(record, std::span(arguments.begin(), arguments.size()));
  }
  /// Marks a loss of events because a buffer was full. Perfetto ignores it.
  fxt::Status buffer_full();

 private:
  template <bool has_extra, fxt::ArgumentValue... Values>
  fxt::Status put_event(const fxt::ComposedEvent& event, fxt::detail::Signature given, std::uint64_t time,
                        std::uint64_t extra, const Values&... values) {
    namespace detail = fxt::detail;
    if (event.signature_ != given) [[unlikely]]
      return refuse_arguments(event, given);
    std::size_t words = 2 + has_extra + (detail::fixed_words(fxt::argument_type_of<Values>()) + ... + 0);
    std::uint64_t header = event.header_;
    if constexpr ((fxt::TextLike<Values> || ...)) {
      if ((detail::is_dangling(values) || ...)) [[unlikely]]
        return refuse_dangling(event);
    }
    if constexpr ((detail::is_stream<Values> || ...)) {
      const std::size_t added = (detail::added_words(values) + ... + 0);
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
      ((out = detail::put_argument(out, *argument++, values)), ...);
    }
    if constexpr (has_extra) *out = extra;
    return fxt::Status::written;
  }

  /// True if there is room for a record at next_; false if the destination has failed.
  bool reserve(std::size_t words) { return words <= static_cast<std::size_t>(end_ - next_) || refill(words); }
  bool refill(std::size_t words);
  bool hand_over();
  void fail(Error error);

  bool define_string(std::uint16_t slot, std::string_view text);
  void define_thread(std::uint8_t slot, std::uint64_t pid, std::uint64_t tid);
  fxt::Text known_name(fxt::KnownName name);
  fxt::Status put_record(const fxt::RecordParts& record);

  fxt::Status refuse_arguments(const fxt::ComposedEvent& event, fxt::detail::Signature given);
  fxt::Status refuse_dangling(const fxt::ComposedEvent& event);
  fxt::Status refuse_size(const fxt::ComposedEvent& event);
  /// Takes a function that makes the Error, because only the first one is kept: refusals may come at any rate.
  template <typename MakeError>
  fxt::Status refuse(fxt::Status status, MakeError make_error) {
    if (failed_) return fxt::Status::failed;
    ++refused_;
    if (!error_) error_ = make_error();
    return status;
  }
  std::string name_of(fxt::StringRef ref) const;

  std::uint64_t* next_ = nullptr;  ///< in the buffer from begin_ to end_
  std::uint64_t* end_ = nullptr;
  std::uint64_t* begin_ = nullptr;
  FxtDestination& destination_;
  std::unique_ptr<fxt::WriterState> state_;
  std::uint64_t refused_ = 0;
  bool failed_ = false;
  std::optional<Error> error_;
};

}  // namespace rtev
