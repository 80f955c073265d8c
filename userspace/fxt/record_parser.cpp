// SPDX-License-Identifier: MIT
#include "fxt/record_parser.hpp"

#include <bit>
#include <string>
#include <utility>

namespace rtev::fxt::parsed {
namespace {

/// Most records are events in a row: event() sets every field, so that the previous one need not be cleared.
EventRecord& event_of(Record& record) {
  if (auto* event = std::get_if<EventRecord>(&record)) return *event;
  return record.emplace<EventRecord>();
}

}  // namespace

bool RecordParser::parse(std::span<const std::byte> bytes, Record& record) {
  RecordCursor words(bytes);
  std::uint64_t header = 0;
  words.word(header);
  if (!contents(header, words, record)) [[unlikely]]
    return false;
  if (auto* const unknown = std::get_if<UnknownRecord>(&record)) [[unlikely]] {
    *unknown = {.type = static_cast<unsigned>(bits(header, 0, 4)), .bytes = bytes};
    return true;
  }
  const std::size_t left = words.words_left();
  return left == 0 || refuse("it has words after its end: " + std::to_string(left));
}

bool RecordParser::contents(std::uint64_t header, RecordCursor& words, Record& record) {
  switch (static_cast<RecordType>(bits(header, 0, 4))) {
    case RecordType::event:
      if (bits(header, 16, 4) > static_cast<std::uint64_t>(EventType::flow_end)) break;
      return event(header, words, event_of(record));
    case RecordType::metadata:
      return metadata(header, words, record);
    case RecordType::initialization:
      return initialization(header, words, record.emplace<Initialization>());
    case RecordType::string:
      return string(header, words, record.emplace<StringRecord>());
    case RecordType::thread:
      return thread(header, words, record.emplace<ThreadRecord>());
    case RecordType::userspace_object:
      return userspace_object(header, words, record.emplace<UserspaceObject>());
    case RecordType::kernel_object:
      return kernel_object(header, words, record.emplace<KernelObject>());
    case RecordType::scheduling:
      if (bits(header, 60, 4) == static_cast<std::uint64_t>(SchedulingType::context_switch))
        return context_switch(header, words, record.emplace<ContextSwitch>());
      if (bits(header, 60, 4) == static_cast<std::uint64_t>(SchedulingType::wakeup))
        return wakeup(header, words, record.emplace<Wakeup>());
      break;
    case RecordType::large:
      break;
  }
  record.emplace<UnknownRecord>();
  return true;
}

bool RecordParser::metadata(std::uint64_t header, RecordCursor& words, Record& record) {
  const auto id = static_cast<std::uint32_t>(bits(header, 20, 32));
  const auto is_current = [&] {
    return id == provider_.id ||
           refuse("provider " + std::to_string(id) + " is not the current one: several providers are not supported");
  };
  switch (static_cast<MetadataType>(bits(header, 16, 4))) {
    case MetadataType::provider_info: {
      auto& info = record.emplace<ProviderInfo>(id);
      provider_ = {};
      provider_.id = id;
      return reserved(bits(header, 60, 4)) && characters("name", bits(header, 52, 8), words, info.name);
    }
    case MetadataType::provider_section:
      record.emplace<ProviderSection>(id);
      return reserved(bits(header, 52, 12)) && is_current();
    case MetadataType::provider_event:
      if (bits(header, 52, 4) != 0) break;  // "buffer full" is the only one
      record.emplace<BufferFull>(id);
      return reserved(bits(header, 56, 8)) && is_current();
    case MetadataType::trace_info:
      if (bits(header, 20, 4) == 0) return refuse("a magic number that is not at the beginning");
      break;
  }
  record.emplace<UnknownRecord>();
  return true;
}

bool RecordParser::initialization(std::uint64_t header, RecordCursor& words, Initialization& initialization) {
  std::uint64_t& ticks = initialization.ticks_per_second;
  if (!reserved(bits(header, 16, 48)) || !word("ticks per second", words, ticks)) return false;
  if (ticks == 0) return refuse("0 ticks per second");
  provider_.ticks_per_second = ticks;
  if (words.words_left() == 0) return true;
  auto& base = initialization.base.emplace();
  return word("base time", words, base.time) && word("wall clock", words, base.wall_ns);
}

bool RecordParser::string(std::uint64_t header, RecordCursor& words, StringRecord& string) {
  string.slot = static_cast<std::uint16_t>(bits(header, 16, 15));
  if (!reserved(bits(header, 31, 1) | bits(header, 47, 17))) return false;
  if (string.slot == 0) return refuse("string 0 cannot be defined");
  if (!characters("text", bits(header, 32, 15), words, string.text)) return false;
  return provider_.strings.set(string.slot, string.text) || refuse("the strings need too much memory");
}

bool RecordParser::thread(std::uint64_t header, RecordCursor& words, ThreadRecord& thread) {
  thread.slot = static_cast<std::uint8_t>(bits(header, 16, 8));
  if (!reserved(bits(header, 24, 40))) return false;
  if (thread.slot == 0) return refuse("thread 0 cannot be defined");
  if (!word("pid", words, thread.pid) || !word("tid", words, thread.tid)) return false;
  provider_.threads[thread.slot] = ThreadIds{thread.pid, thread.tid};
  return true;
}

bool RecordParser::event(std::uint64_t header, RecordCursor& words, EventRecord& event) {
  event.type = static_cast<EventType>(bits(header, 16, 4));
  event.extra = 0;
  return word("time", words, event.time) && thread("thread", bits(header, 24, 8), words, event.thread) &&
         text("category", bits(header, 32, 16), words, event.category) &&
         text("name", bits(header, 48, 16), words, event.name) &&
         arguments(bits(header, 20, 4), words, event.arguments) &&
         (!has_extra_word(event.type) || word("last word", words, event.extra));
}

bool RecordParser::userspace_object(std::uint64_t header, RecordCursor& words, UserspaceObject& object) {
  if (!reserved(bits(header, 44, 20)) || !word("address", words, object.address)) return false;
  object.process.ref = {static_cast<std::uint8_t>(bits(header, 16, 8))};
  // Unlike events, it has no word for the tid.
  const bool has_process = object.process.ref.is_inline() ? word("process", words, object.process.pid)
                                                          : slot_thread("process", object.process);
  return has_process && text("name", bits(header, 24, 16), words, object.name) &&
         arguments(bits(header, 40, 4), words, object.arguments);
}

bool RecordParser::kernel_object(std::uint64_t header, RecordCursor& words, KernelObject& object) {
  object.type = static_cast<KernelObjectType>(bits(header, 16, 8));
  return reserved(bits(header, 44, 20)) && word("koid", words, object.koid) &&
         text("name", bits(header, 24, 16), words, object.name) &&
         arguments(bits(header, 40, 4), words, object.arguments);
}

bool RecordParser::context_switch(std::uint64_t header, RecordCursor& words, ContextSwitch& change) {
  change.cpu = static_cast<std::uint16_t>(bits(header, 20, 16));
  const std::uint64_t state = bits(header, 36, 4);
  if (state > static_cast<std::uint64_t>(ThreadState::dead))
    return refuse("there is no thread state " + std::to_string(state));
  change.outgoing_state = static_cast<ThreadState>(state);
  return reserved(bits(header, 40, 20)) && word("time", words, change.time) &&
         word("outgoing thread", words, change.outgoing_tid) && word("incoming thread", words, change.incoming_tid) &&
         arguments(bits(header, 16, 4), words, change.arguments);
}

bool RecordParser::wakeup(std::uint64_t header, RecordCursor& words, Wakeup& wakeup) {
  wakeup.cpu = static_cast<std::uint16_t>(bits(header, 20, 16));
  return reserved(bits(header, 36, 24)) && word("time", words, wakeup.time) && word("thread", words, wakeup.tid) &&
         arguments(bits(header, 16, 4), words, wakeup.arguments);
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
  if (!words.part(size - 1, own)) return refuse("its size of " + std::to_string(size) + " words exceeds the record");
  if (!text("name", bits(header, 16, 16), own, argument.name) || !value(header, own, argument.value)) return false;
  const std::size_t left = own.words_left();
  return left == 0 || refuse("it has words after its value: " + std::to_string(left));
}

bool RecordParser::value(std::uint64_t header, RecordCursor& words, Value& value) {
  const std::uint64_t upper = bits(header, 32, 32);
  const auto low = static_cast<std::uint32_t>(upper);
  const auto type = static_cast<ArgumentType>(bits(header, 0, 4));
  const auto next_word = [&](auto&& make) {
    std::uint64_t word = 0;
    if (!reserved(upper) || !this->word("value", words, word)) return false;
    value = make(word);
    return true;
  };
  switch (type) {
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
  return refuse("argument type " + std::to_string(static_cast<unsigned>(type)) + " is not supported");
}

bool RecordParser::stream(const char* what, std::size_t size, RecordCursor& words, std::span<const std::byte>& bytes) {
  if (!words.stream(size, bytes)) {
    return refuse("too short for its " + std::string(what) + " of " + std::to_string(size) + " bytes");
  }
  return words.padded(size) || refuse(std::string("the padding of its ") + what + " is not zero");
}

bool RecordParser::characters(const char* what, std::size_t size, RecordCursor& words, std::string_view& text) {
  if (size > max_string_bytes) {
    return refuse("its " + std::string(what) + " has " + std::to_string(size) + " bytes, more than " +
                  std::to_string(max_string_bytes));
  }
  std::span<const std::byte> bytes;
  if (!stream(what, size, words, bytes)) return false;
  text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  return true;
}

bool RecordParser::reserved(std::uint64_t bits) {
  return bits == 0 || refuse("reserved bits are set");
}

bool RecordParser::refuse(std::string reason) {
  reason_ = std::move(reason);
  return false;
}

bool RecordParser::refuse_short(const char* what) {
  return refuse(std::string("too short for its ") + what);
}

bool RecordParser::refuse_ref(const char* what, const char* table, std::uint64_t slot) {
  return refuse("its " + std::string(what) + " is " + table + " " + std::to_string(slot) + ", which is not defined");
}

const Argument* find(Arguments arguments, std::string_view name) {
  for (const Argument& argument : arguments) {
    if (argument.name.text == name) return &argument;
  }
  return nullptr;
}

}  // namespace rtev::fxt::parsed
