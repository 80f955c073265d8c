// SPDX-License-Identifier: MIT
// What records are made of: words, streams, references, arguments.
#include <bit>
#include <string>

#include "fxt/record_parser.hpp"

namespace rtev::fxt::parsed {

bool RecordParser::refuse(std::string reason) {
  reason_ = std::move(reason);
  return false;
}

bool RecordParser::reserved(std::uint64_t bits) {
  return bits == 0 || refuse("reserved bits are set");
}

bool RecordParser::refuse_short(const char* what) {
  return refuse(std::string("too short for its ") + what);
}

bool RecordParser::refuse_ref(const char* what, const char* table, std::uint64_t slot) {
  return refuse("its " + std::string(what) + " is " + table + " " + std::to_string(slot) + ", which is not defined");
}

bool RecordParser::refuse_provider(std::uint32_t id) {
  return refuse("provider " + std::to_string(id) + " was not introduced");
}

bool RecordParser::allowed(const char* what, std::size_t text_size) {
  return text_size <= max_string_bytes || refuse("its " + std::string(what) + " has " + std::to_string(text_size) +
                                                 " bytes, more than " + std::to_string(max_string_bytes));
}

bool RecordParser::stream(const char* what, std::size_t size, RecordCursor& words, std::span<const std::byte>& bytes) {
  if (!words.stream(size, bytes)) {
    return refuse("too short for its " + std::string(what) + " of " + std::to_string(size) + " bytes");
  }
  return words.padded(size) || refuse(std::string("the padding of its ") + what + " is not zero");
}

bool RecordParser::characters(const char* what, std::size_t size, RecordCursor& words, std::string_view& text) {
  std::span<const std::byte> bytes;
  if (!stream(what, size, words, bytes)) return false;
  text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  return true;
}

bool RecordParser::inline_text(const char* what, RecordCursor& words, Text& text) {
  const std::size_t size = text.ref.inline_bytes();
  return allowed(what, size) && characters(what, size, words, text.text);
}

bool RecordParser::state(std::uint64_t number, ThreadState& state) {
  if (number > static_cast<std::uint64_t>(ThreadState::dead)) {
    return refuse("there is no thread state " + std::to_string(number));
  }
  state = static_cast<ThreadState>(number);
  return true;
}

bool RecordParser::fill_arguments(std::size_t count, RecordCursor& words) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!argument(words, arguments_[i])) {
      return refuse("argument " + std::to_string(i + 1) + " of " + std::to_string(count) + ": " + reason_);
    }
  }
  return true;
}

bool RecordParser::argument(RecordCursor& words, Argument& argument) {
  std::uint64_t header = 0;
  if (!words.word(header)) return refuse("the record ends before it");
  const std::size_t size = bits(header, 4, 12);
  if (size == 0) return refuse("its size is 0");
  RecordCursor own;
  if (!words.part(size - 1, own)) return refuse("its size of " + std::to_string(size) + " words leaves the record");
  if (!text("name", bits(header, 16, 16), own, argument.name) || !value(header, own, argument.value)) return false;
  const std::size_t left = own.words_left();
  return left == 0 || refuse("it has words after its value: " + std::to_string(left));
}

bool RecordParser::value(std::uint64_t header, RecordCursor& words, Value& value) {
  const std::uint64_t upper = bits(header, 32, 32);
  const auto low = static_cast<std::uint32_t>(upper);
  const auto number = bits(header, 0, 4);
  const auto type = static_cast<ArgumentType>(number);
  const auto next_word = [&](auto&& make) {
    std::uint64_t word = 0;
    if (!reserved(upper) || !this->word("value", words, word)) return false;
    value = make(word);
    return true;
  };
  switch (type) {
    case ArgumentType::null:
      value = nullptr;
      return reserved(upper);
    case ArgumentType::int32:
      value = std::bit_cast<std::int32_t>(low);
      return true;
    case ArgumentType::uint32:
      value = low;
      return true;
    case ArgumentType::int64:
      return next_word([](std::uint64_t word) { return std::bit_cast<std::int64_t>(word); });
    case ArgumentType::uint64:
      return next_word([](std::uint64_t word) { return word; });
    case ArgumentType::floating:
      return next_word([](std::uint64_t word) { return std::bit_cast<double>(word); });
    case ArgumentType::pointer:
      return next_word([](std::uint64_t word) { return Pointer{word}; });
    case ArgumentType::koid:
      return next_word([](std::uint64_t word) { return Koid{word}; });
    case ArgumentType::string:
      return reserved(upper >> 16) && text("value", bits(header, 32, 16), words, value.emplace<Text>());
    case ArgumentType::boolean:
      value = (upper & 1) != 0;
      return reserved(upper >> 1);
    case ArgumentType::blob:
      return stream("value", upper, words, value.emplace<Blob>().bytes);
  }
  return refuse("there is no argument type " + std::to_string(number));
}

const Argument* find(Arguments arguments, std::string_view name) {
  for (const Argument& argument : arguments) {
    if (argument.name.text == name) return &argument;
  }
  return nullptr;
}

}  // namespace rtev::fxt::parsed
