// SPDX-License-Identifier: MIT
#include "fxt/record_encoder.hpp"

namespace rtev::fxt {
namespace {

// Past this the record is refused whatever else it has, so that sums of sizes cannot overflow.
std::size_t bounded(std::size_t words) {
  return words < encode::too_many_words ? words : encode::too_many_words;
}

std::size_t stream_words_of(const Value& value) {
  switch (value.type()) {
    case ArgumentType::string:
      return encode::text_words(value.text().inline_text());
    case ArgumentType::blob:
      return encode::payload_words(value.blob().size());
    default:
      return 0;
  }
}

}  // namespace

RecordSize& RecordSize::add(const Text& text) {
  if (text.ref().is_inline()) refuse(Status::wrong_arguments, "a reference says inline text, but there is none");
  if (text.inline_text().size() > max_string_bytes) refuse(Status::over_limit, "a text has more than 32000 bytes");
  words_ = bounded(words_ + encode::text_words(text.inline_text()));
  return *this;
}

RecordSize& RecordSize::add(const Thread& thread) {
  if (thread.is_inline()) {
    words_ += 2;
  } else if (thread.ref().is_inline()) {
    refuse(Status::wrong_arguments, "a reference says inline thread, but there is none");
  }
  return *this;
}

RecordSize& RecordSize::add(std::span<const Argument> arguments) {
  arguments_ += arguments.size();
  if (arguments_ > max_arguments) {
    refuse(Status::over_limit, "it has more than 15 arguments");
    return *this;
  }
  for (const Argument& argument : arguments) {
    add(argument.name);
    if (argument.value.type() == ArgumentType::string) {
      add(argument.value.text());
    } else {
      words_ = bounded(words_ + stream_words_of(argument.value));
    }
    words_ = bounded(words_ + encode::fixed_words(argument.value.type()));
  }
  return *this;
}

RecordSize& RecordSize::add_payload(std::size_t bytes) {
  if (bytes > max_payload_bytes) refuse(Status::over_limit, "its payload has more than 32767 bytes");
  words_ = bounded(words_ + encode::payload_words(bytes));
  return *this;
}

RecordSize& RecordSize::require(bool good, std::string_view why) {
  if (!good) refuse(Status::wrong_arguments, why);
  return *this;
}

void RecordSize::refuse(Status status, std::string_view why) {
  if (status_ != Status::written) return;
  status_ = status;
  why_ = why;
}

std::uint64_t* put_text(std::uint64_t* out, const Text& text) {
  return encode::put_stream(out, text.inline_text().data(), text.inline_text().size());
}

std::uint64_t* put_thread(std::uint64_t* out, const Thread& thread) {
  if (!thread.is_inline()) return out;
  out[0] = thread.pid();
  out[1] = thread.tid();
  return out + 2;
}

std::uint64_t* put_arguments(std::uint64_t* out, std::span<const Argument> arguments) {
  for (const auto& [name, value] : arguments) {
    std::uint64_t* const header = out;
    out = put_text(out + 1, name);
    std::uint64_t high = 0;
    if (value.type() == ArgumentType::string) {
      high = encode::text_bits(value.text());
      out = put_text(out, value.text());
    } else if (value.type() == ArgumentType::blob) {
      high = value.blob().size();
      out = encode::put_stream(out, value.blob().data(), value.blob().size());
    } else if (encode::fixed_words(value.type()) == 2) {
      *out++ = value.bits();
    } else {
      high = value.bits();
    }
    *header =
        argument_header(value.type(), static_cast<std::size_t>(out - header), encode::text_bits(name)) | high << 32;
  }
  return out;
}

}  // namespace rtev::fxt
