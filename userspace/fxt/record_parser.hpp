// SPDX-License-Identifier: MIT
// Makes a Record of the bytes of one, and finds out what is wrong with them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fxt/reader_tables.hpp"
#include "fxt/record_cursor.hpp"
#include "rtev/fxt_reader.hpp"

namespace rtev::fxt::parsed {

class RecordParser {
 public:
  explicit RecordParser(Providers& providers) : providers_(providers) {}
  RecordParser(const RecordParser&) = delete;
  RecordParser& operator=(const RecordParser&) = delete;

  /// Reads a record of at least one word, whose size is the one its header tells, and keeps what later ones refer to.
  /// False if the format does not allow it. The record shows its bytes and the parser's memory: it is valid until the
  /// next one is parsed.
  bool parse(std::span<const std::byte> bytes, Record& record);
  /// Why the last parse() failed.
  const std::string& reason() const { return reason_; }

 private:
  // Each reads what follows the header. Words that are left then, parse() finds.
  bool contents(std::uint64_t header, RecordCursor& words, Record& record);
  bool metadata(std::uint64_t header, RecordCursor& words, Record& record);
  bool initialization(std::uint64_t header, RecordCursor& words, Initialization& initialization);
  bool string(std::uint64_t header, RecordCursor& words, StringRecord& string);
  bool thread(std::uint64_t header, RecordCursor& words, ThreadRecord& thread);
  bool event(std::uint64_t header, RecordCursor& words, EventRecord& event);
  bool blob(std::uint64_t header, RecordCursor& words, BlobRecord& blob);
  bool userspace_object(std::uint64_t header, RecordCursor& words, UserspaceObject& object);
  bool kernel_object(std::uint64_t header, RecordCursor& words, KernelObject& object);
  bool scheduling(std::uint64_t header, RecordCursor& words, Record& record);
  bool legacy_switch(std::uint64_t header, RecordCursor& words, LegacySwitch& change);
  bool context_switch(std::uint64_t header, RecordCursor& words, ContextSwitch& change);
  bool wakeup(std::uint64_t header, RecordCursor& words, Wakeup& wakeup);
  bool log(std::uint64_t header, RecordCursor& words, LogRecord& log);

  // What records are made of. `what` says in reasons what is read. What nearly all events have is inline.
  bool arguments(std::size_t count, RecordCursor& words, Arguments& arguments) {
    arguments = std::span(arguments_).first(count);
    return count == 0 || fill_arguments(count, words);
  }
  bool fill_arguments(std::size_t count, RecordCursor& words);
  bool argument(RecordCursor& words, Argument& argument);
  bool value(std::uint64_t header, RecordCursor& words, Value& value);

  bool word(const char* what, RecordCursor& words, std::uint64_t& value) {
    return words.word(value) || refuse_short(what);
  }
  bool stream(const char* what, std::size_t size, RecordCursor& words, std::span<const std::byte>& bytes);
  bool characters(const char* what, std::size_t size, RecordCursor& words, std::string_view& text);

  bool text(const char* what, std::uint64_t ref, RecordCursor& words, Text& text) {
    text.ref = {static_cast<std::uint16_t>(ref)};
    if (text.ref.is_inline()) return inline_text(what, words, text);
    if (text.ref.is_empty()) {
      text.text = {};
      return true;
    }
    return providers_.current().strings.get(text.ref.slot(), text.text) || refuse_ref(what, "string", ref);
  }
  bool inline_text(const char* what, RecordCursor& words, Text& text);

  bool thread(const char* what, std::uint64_t ref, RecordCursor& words, Thread& thread) {
    thread.ref = {static_cast<std::uint8_t>(ref)};
    if (!thread.ref.is_inline()) return slot_thread(what, thread);
    return word(what, words, thread.pid) && word(what, words, thread.tid);
  }
  bool slot_thread(const char* what, Thread& thread) {
    const auto& ids = providers_.current().threads[thread.ref.slot()];
    if (!ids) return refuse_ref(what, "thread", thread.ref.slot());
    thread.pid = ids->pid;
    thread.tid = ids->tid;
    return true;
  }
  bool state(std::uint64_t number, ThreadState& state);

  /// True if these bits of a header are zero, as they have to be.
  bool reserved(std::uint64_t bits);
  bool allowed(const char* what, std::size_t text_size);

  // All false.
  bool refuse(std::string reason);
  bool refuse_short(const char* what);
  bool refuse_ref(const char* what, const char* table, std::uint64_t slot);
  bool refuse_provider(std::uint32_t id);

  Providers& providers_;
  std::array<Argument, max_arguments> arguments_;
  std::string reason_;
};

}  // namespace rtev::fxt::parsed
