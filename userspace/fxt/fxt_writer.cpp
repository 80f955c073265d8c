// SPDX-License-Identifier: MIT
// FxtWriter's buffer, strings, threads and composed events.
#include "rtev/fxt_writer.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/enum_names.hpp"
#include "fxt/fxt_writer_state.hpp"

namespace rtev {
namespace {

using fxt::Status;

constexpr std::size_t thread_record_words = 3;

std::optional<Error> wrong_options(const FxtWriter::Options& options) {
  const auto error = [](std::string why) {
    return Error{.what = "cannot write a trace", .why = "invalid options: " + std::move(why)};
  };
  if (options.fixed_strings + options.temporary_strings > fxt::max_string_slot)
    return error("more than 32767 fixed and temporary strings");
  if (options.provider_name.size() > fxt::max_provider_name_bytes)
    return error("the provider's name has more than 255 bytes");
  if (options.ticks_per_second == 0) return error("0 ticks per second");
  return {};
}

/// "counter id, int64", for messages.
std::string text_of(fxt::detail::Signature signature) {
  static constexpr std::array<std::string_view, 5> extras{"", "counter id", "end time", "async id", "flow id"};
  std::string text(extras[signature >> 60]);
  for (auto arguments = signature & ~(fxt::detail::Signature{15} << 60); arguments != 0; arguments >>= 4) {
    if (!text.empty()) text += ", ";
    text += to_string(static_cast<fxt::ArgumentType>(arguments & 15));
  }
  return text.empty() ? "no values" : text;
}

}  // namespace

namespace fxt {

std::string_view to_string(EventType type) {
  static constexpr std::string_view names[] = {"instant",           "counter",     "duration begin", "duration end",
                                               "duration complete", "async begin", "async instant",  "async end",
                                               "flow begin",        "flow step",   "flow end"};
  return name_at(names, type);
}

std::string_view to_string(ArgumentType type) {
  static constexpr std::string_view names[] = {"unknown", "int32",   "uint32", "int64", "uint64", "double",
                                               "string",  "pointer", "koid",   "bool",  "blob"};
  return name_at(names, type);
}

std::string_view to_string(Status status) {
  static constexpr std::string_view names[] = {"written", "wrong arguments", "over a limit of the format",
                                               "the trace failed"};
  return name_at(names, status);
}

}  // namespace fxt

FxtWriter::FxtWriter(FxtDestination& destination, const Options& options)
    : destination_(destination), state_(std::make_unique<fxt::WriterState>(options)) {
  if (auto wrong = wrong_options(options)) {
    fail(std::move(*wrong));
    return;
  }
  // Viewers reset the ticks with each provider: its record comes before the initialization.
  const std::string_view name = options.provider_name;
  const std::size_t info_words = 1 + fxt::detail::stream_words(name.size());
  constexpr std::size_t initialization_words = 2;
  if (!reserve(1)) return;
  *next_++ = fxt::magic;
  if (!reserve(info_words)) return;
  *next_++ = metadata_header(fxt::MetadataType::provider_info, info_words, options.provider_id) |
             std::uint64_t{name.size()} << 52;
  next_ = fxt::detail::put_stream(next_, name.data(), name.size());
  if (!reserve(initialization_words)) return;
  *next_++ = record_header(fxt::RecordType::initialization, initialization_words);
  *next_++ = options.ticks_per_second;
}

FxtWriter::~FxtWriter() {
  flush();
}

Status FxtWriter::flush() {
  if (!hand_over()) return Status::failed;
  if (auto flushed = destination_.flush(); !flushed) {
    fail(std::move(flushed.error()));
    return Status::failed;
  }
  return Status::written;
}

bool FxtWriter::refill(std::size_t words) {
  if (!hand_over()) return false;
  auto buffer = destination_.buffer(words);
  if (!buffer) {
    fail(std::move(buffer.error()));
    return false;
  }
  if (buffer->size() < words) {
    fail({.what = "cannot write a trace",
          .why = "the destination's buffer has " + std::to_string(buffer->size()) + " words, a record " +
                 std::to_string(words)});
    return false;
  }
  begin_ = next_ = buffer->data();
  end_ = begin_ + buffer->size();
  return true;
}

bool FxtWriter::hand_over() {
  if (failed_) return false;
  const std::span<const std::uint64_t> records(begin_, next_);
  begin_ = next_ = end_ = nullptr;
  if (records.empty()) return true;
  auto accepted = destination_.accept(records);
  if (!accepted) fail(std::move(accepted.error()));
  return !failed_;
}

void FxtWriter::fail(Error error) {
  begin_ = next_ = end_ = nullptr;
  failed_ = true;
  error_ = std::move(error);
}

fxt::StringRef FxtWriter::intern(std::string_view text) {
  fxt::StringSlots& strings = state_->strings;
  if (text.empty()) return {};
  if (const std::uint16_t slot = strings.find(text); slot != 0) return {slot};
  if (!strings.has_room_for(text)) return temporary(text);
  // The record first: find() must not return a text that could not be defined.
  if (!define_string(strings.next_interned(), text)) return {};
  return {strings.intern(text)};
}

fxt::StringRef FxtWriter::temporary(std::string_view text) {
  if (text.empty()) return {};
  const std::uint16_t slot = state_->strings.take_temporary();
  if (slot == 0) {
    refuse(Status::over_limit, [&] {
      return Error{.what = "cannot define string",
                   .subject = std::string(text),
                   .why = "no slot is left, and the writer has no temporary ones"};
    });
    return {};
  }
  if (!define_string(slot, text)) return {};
  return {slot};
}

fxt::StringRef FxtWriter::set_string(std::uint16_t slot, std::string_view text) {
  if (!state_->strings.is_fixed(slot)) {
    refuse(Status::over_limit, [&] {
      return Error{.what = "cannot set string slot", .subject = std::to_string(slot), .why = "it is not a fixed slot"};
    });
    return {};
  }
  if (!define_string(slot, text)) return {};
  return {slot};
}

bool FxtWriter::is_lasting(fxt::StringRef ref) const {
  return ref.is_empty() || state_->strings.is_interned(ref.bits);
}

bool FxtWriter::define_string(std::uint16_t slot, std::string_view text) {
  if (text.size() > fxt::max_string_bytes) {
    refuse(Status::over_limit, [&] {
      return Error{.what = "cannot define string",
                   .subject = std::string(text.substr(0, 32)) + "…",
                   .why = "it has " + std::to_string(text.size()) + " bytes, at most 32000 are allowed"};
    });
    return false;
  }
  const std::size_t words = 1 + fxt::detail::stream_words(text.size());
  if (!reserve(words)) return false;
  *next_++ =
      record_header(fxt::RecordType::string, words) | std::uint64_t{slot} << 16 | std::uint64_t{text.size()} << 32;
  next_ = fxt::detail::put_stream(next_, text.data(), text.size());
  return true;
}

fxt::ThreadRef FxtWriter::thread(std::uint64_t pid, std::uint64_t tid) {
  // Room first: find() must not return a thread that could not be defined.
  if (!reserve(thread_record_words)) return {};
  if (const std::uint8_t slot = state_->threads.find(pid, tid); slot != 0) return {slot};
  const std::uint8_t slot = state_->threads.assign(pid, tid);
  if (slot == 0) {
    refuse(Status::over_limit, [&] {
      return Error{
          .what = "cannot define thread", .subject = std::to_string(tid), .why = "all slots of the writer are fixed"};
    });
    return {};
  }
  define_thread(slot, pid, tid);
  return {slot};
}

fxt::ThreadRef FxtWriter::set_thread(std::uint8_t slot, std::uint64_t pid, std::uint64_t tid) {
  if (!state_->threads.is_fixed(slot)) {
    refuse(Status::over_limit, [&] {
      return Error{.what = "cannot set thread slot", .subject = std::to_string(slot), .why = "it is not a fixed slot"};
    });
    return {};
  }
  if (!reserve(thread_record_words)) return {};
  define_thread(slot, pid, tid);
  return {slot};
}

void FxtWriter::define_thread(std::uint8_t slot, std::uint64_t pid, std::uint64_t tid) {
  next_[0] = record_header(fxt::RecordType::thread, thread_record_words) | std::uint64_t{slot} << 16;
  next_[1] = pid;
  next_[2] = tid;
  next_ += thread_record_words;
}

fxt::ComposedEvent FxtWriter::compose(fxt::EventType type, fxt::ThreadRef thread, fxt::StringRef category,
                                      fxt::StringRef name, std::span<const fxt::Parameter> parameters) {
  const auto refuse_it = [&](Status status, std::string_view why) {
    refuse(status,
           [&] { return Error{.what = "cannot compose event", .subject = name_of(name), .why = std::string(why)}; });
    return fxt::ComposedEvent();
  };
  if (type > fxt::flow_end) return refuse_it(Status::wrong_arguments, "the format has no such event type");
  if (thread.is_inline() || category.is_inline() || name.is_inline())
    return refuse_it(Status::wrong_arguments, "its thread, category and name must be references to slots");
  if (parameters.size() > fxt::max_arguments) return refuse_it(Status::over_limit, "it has more than 15 parameters");

  const bool has_extra = fxt::has_extra_word(type);
  std::size_t words = std::size_t{2} + has_extra;
  fxt::detail::Signature signature = fxt::detail::signature_part(fxt::detail::extra_kind(type));
  std::vector<std::uint64_t> headers;
  for (const fxt::Parameter& parameter : parameters) {
    if (parameter.type < fxt::ArgumentType::int32 || parameter.type > fxt::ArgumentType::blob ||
        parameter.name.is_inline())
      return refuse_it(Status::wrong_arguments, "a parameter has an unknown type or an inline name");
    const std::size_t argument_words = fxt::detail::fixed_words(parameter.type);
    signature |= fxt::detail::signature_part(parameter.type, headers.size());
    headers.push_back(fxt::argument_header(parameter.type, argument_words, parameter.name.bits));
    words += argument_words;
  }
  const std::uint64_t header = record_header(fxt::RecordType::event, words) | static_cast<std::uint64_t>(type) << 16 |
                               std::uint64_t{parameters.size()} << 20 | std::uint64_t{thread.bits} << 24 |
                               std::uint64_t{category.bits} << 32 | std::uint64_t{name.bits} << 48;
  return {header, signature, headers.empty() ? nullptr : state_->keep(std::move(headers))};
}

Status FxtWriter::refuse_arguments(const fxt::ComposedEvent& event, fxt::detail::Signature given) {
  return refuse(Status::wrong_arguments, [&] {
    return Error{.what = "cannot write event",
                 .subject = name_of(event.name()),
                 .why = event.valid() ? "it takes " + text_of(event.signature_) + ", not " + text_of(given)
                                      : "it is not a valid composed event"};
  });
}

Status FxtWriter::refuse_dangling(const fxt::ComposedEvent& event) {
  return refuse(Status::wrong_arguments, [&] {
    return Error{.what = "cannot write event",
                 .subject = name_of(event.name()),
                 .why = "a value is a reference to inline text, without the text"};
  });
}

Status FxtWriter::refuse_size(const fxt::ComposedEvent& event) {
  return refuse(Status::over_limit, [&] {
    return Error{.what = "cannot write event",
                 .subject = name_of(event.name()),
                 .why = "a text has more than 32000 bytes, or the record more than 4095 words"};
  });
}

std::string FxtWriter::name_of(fxt::StringRef ref) const {
  return std::string(state_->strings.text_of(ref.bits));
}

}  // namespace rtev
