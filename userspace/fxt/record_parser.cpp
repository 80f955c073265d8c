// SPDX-License-Identifier: MIT
#include "fxt/record_parser.hpp"

#include <string>

namespace rtev::fxt::parsed {
namespace {

/// Others are skipped, as the format wants it. All types of records and their subtypes are looked at in here.
bool is_known(std::uint64_t header) {
  switch (static_cast<RecordType>(bits(header, 0, 4))) {
    case RecordType::metadata: {
      const std::uint64_t type = bits(header, 16, 4);
      const bool is_magic = type == static_cast<std::uint64_t>(MetadataType::trace_info) && bits(header, 20, 4) == 0;
      return is_magic || (type >= static_cast<std::uint64_t>(MetadataType::provider_info) &&
                          type <= static_cast<std::uint64_t>(MetadataType::provider_event));
    }
    case RecordType::event:
      return bits(header, 16, 4) <= static_cast<std::uint64_t>(EventType::flow_end);
    case RecordType::scheduling:
      return bits(header, 60, 4) <= static_cast<std::uint64_t>(SchedulingType::wakeup);
    case RecordType::initialization:
    case RecordType::string:
    case RecordType::thread:
    case RecordType::blob:
    case RecordType::userspace_object:
    case RecordType::kernel_object:
    case RecordType::log:
      return true;
    case RecordType::profiler:
    case RecordType::large:
      break;
  }
  return false;
}

/// Most records are events, one after the other: event() sets every field, so that they need not be cleared first.
EventRecord& event_of(Record& record) {
  if (auto* event = std::get_if<EventRecord>(&record)) return *event;
  return record.emplace<EventRecord>();
}

}  // namespace

bool RecordParser::parse(std::span<const std::byte> bytes, Record& record) {
  RecordCursor words(bytes);
  std::uint64_t header = 0;
  words.word(header);
  if (!is_known(header)) [[unlikely]] {
    record = UnknownRecord{static_cast<RecordType>(bits(header, 0, 4)), bytes};
    return true;
  }
  if (!contents(header, words, record)) [[unlikely]]
    return false;
  const std::size_t left = words.words_left();
  return left == 0 || refuse("it has words after its end: " + std::to_string(left));
}

bool RecordParser::contents(std::uint64_t header, RecordCursor& words, Record& record) {
  switch (static_cast<RecordType>(bits(header, 0, 4))) {
    case RecordType::event:
      return event(header, words, event_of(record));
    case RecordType::metadata:
      return metadata(header, words, record);
    case RecordType::initialization:
      return initialization(header, words, record.emplace<Initialization>());
    case RecordType::string:
      return string(header, words, record.emplace<StringRecord>());
    case RecordType::thread:
      return thread(header, words, record.emplace<ThreadRecord>());
    case RecordType::blob:
      return blob(header, words, record.emplace<BlobRecord>());
    case RecordType::userspace_object:
      return userspace_object(header, words, record.emplace<UserspaceObject>());
    case RecordType::kernel_object:
      return kernel_object(header, words, record.emplace<KernelObject>());
    case RecordType::scheduling:
      return scheduling(header, words, record);
    case RecordType::log:
      return log(header, words, record.emplace<LogRecord>());
    default:
      return false;  // is_known() lets none of them pass
  }
}

bool RecordParser::metadata(std::uint64_t header, RecordCursor& words, Record& record) {
  const auto id = static_cast<std::uint32_t>(bits(header, 20, 32));
  switch (static_cast<MetadataType>(bits(header, 16, 4))) {
    case MetadataType::provider_info: {
      auto& info = record.emplace<ProviderInfo>(id);
      return reserved(bits(header, 60, 4)) && characters("name", bits(header, 52, 8), words, info.name) &&
             (providers_.introduce(id) || refuse("there are too many providers"));
    }
    case MetadataType::provider_section:
      record.emplace<ProviderSection>(id);
      return reserved(bits(header, 52, 12)) && (providers_.select(id) || refuse_provider(id));
    case MetadataType::provider_event:
      record.emplace<ProviderEventRecord>(id, static_cast<ProviderEvent>(bits(header, 52, 4)));
      return reserved(bits(header, 56, 8)) && (providers_.knows(id) || refuse_provider(id));
    default:
      return refuse("a magic number that is not at the beginning");
  }
}

bool RecordParser::initialization(std::uint64_t header, RecordCursor& words, Initialization& initialization) {
  std::uint64_t& ticks = initialization.ticks_per_second;
  if (!reserved(bits(header, 16, 48)) || !word("ticks per second", words, ticks)) return false;
  if (ticks == 0) return refuse("0 ticks per second");
  providers_.current().ticks_per_second = ticks;
  if (words.words_left() == 0) return true;
  auto& base = initialization.base.emplace();
  return word("base time", words, base.time) && word("wall clock", words, base.wall_ns);
}

bool RecordParser::string(std::uint64_t header, RecordCursor& words, StringRecord& string) {
  string.slot = static_cast<std::uint16_t>(bits(header, 16, 15));
  const std::size_t size = bits(header, 32, 15);
  if (!reserved(bits(header, 31, 1) | bits(header, 47, 17))) return false;
  if (string.slot == 0) return refuse("string 0 cannot be defined");
  if (!allowed("text", size) || !characters("text", size, words, string.text)) return false;
  return providers_.current().strings.set(string.slot, string.text) || refuse("the strings need too much memory");
}

bool RecordParser::thread(std::uint64_t header, RecordCursor& words, ThreadRecord& thread) {
  thread.slot = static_cast<std::uint8_t>(bits(header, 16, 8));
  if (!reserved(bits(header, 24, 40))) return false;
  if (thread.slot == 0) return refuse("thread 0 cannot be defined");
  if (!word("pid", words, thread.pid) || !word("tid", words, thread.tid)) return false;
  providers_.current().threads[thread.slot] = ThreadIds{thread.pid, thread.tid};
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

bool RecordParser::blob(std::uint64_t header, RecordCursor& words, BlobRecord& blob) {
  blob.type = static_cast<BlobType>(bits(header, 48, 8));
  return reserved(bits(header, 47, 1) | bits(header, 56, 8)) && text("name", bits(header, 16, 16), words, blob.name) &&
         stream("payload", bits(header, 32, 15), words, blob.payload);
}

bool RecordParser::userspace_object(std::uint64_t header, RecordCursor& words, UserspaceObject& object) {
  if (!reserved(bits(header, 44, 20)) || !word("address", words, object.address)) return false;
  object.process.ref = {static_cast<std::uint8_t>(bits(header, 16, 8))};
  // Unlike other records, it has no word for the tid.
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

bool RecordParser::scheduling(std::uint64_t header, RecordCursor& words, Record& record) {
  switch (static_cast<SchedulingType>(bits(header, 60, 4))) {
    case SchedulingType::legacy_switch:
      return legacy_switch(header, words, record.emplace<LegacySwitch>());
    case SchedulingType::context_switch:
      return context_switch(header, words, record.emplace<ContextSwitch>());
    default:
      return wakeup(header, words, record.emplace<Wakeup>());
  }
}

bool RecordParser::legacy_switch(std::uint64_t header, RecordCursor& words, LegacySwitch& change) {
  change.cpu = static_cast<std::uint8_t>(bits(header, 16, 8));
  change.outgoing_priority = static_cast<std::uint8_t>(bits(header, 44, 8));
  change.incoming_priority = static_cast<std::uint8_t>(bits(header, 52, 8));
  return state(bits(header, 24, 4), change.outgoing_state) && word("time", words, change.time) &&
         thread("outgoing thread", bits(header, 28, 8), words, change.outgoing) &&
         thread("incoming thread", bits(header, 36, 8), words, change.incoming);
}

bool RecordParser::context_switch(std::uint64_t header, RecordCursor& words, ContextSwitch& change) {
  change.cpu = static_cast<std::uint16_t>(bits(header, 20, 16));
  return reserved(bits(header, 40, 20)) && state(bits(header, 36, 4), change.outgoing_state) &&
         word("time", words, change.time) && word("outgoing thread", words, change.outgoing_tid) &&
         word("incoming thread", words, change.incoming_tid) && arguments(bits(header, 16, 4), words, change.arguments);
}

bool RecordParser::wakeup(std::uint64_t header, RecordCursor& words, Wakeup& wakeup) {
  wakeup.cpu = static_cast<std::uint16_t>(bits(header, 20, 16));
  return reserved(bits(header, 36, 24)) && word("time", words, wakeup.time) && word("thread", words, wakeup.tid) &&
         arguments(bits(header, 16, 4), words, wakeup.arguments);
}

bool RecordParser::log(std::uint64_t header, RecordCursor& words, LogRecord& log) {
  return reserved(bits(header, 31, 1) | bits(header, 40, 24)) && word("time", words, log.time) &&
         thread("thread", bits(header, 32, 8), words, log.thread) &&
         characters("message", bits(header, 16, 15), words, log.message);
}

}  // namespace rtev::fxt::parsed
