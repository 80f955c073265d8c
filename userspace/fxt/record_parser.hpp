// SPDX-License-Identifier: MIT
// Parses records. Keeps the tables that later records refer to.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fxt/record_cursor.hpp"
#include "fxt/record_layout.hpp"
#include "rtev/fxt_reader.hpp"

namespace rtev::fxt::parsed {

/// Strings by slot, with bounded memory. A slot reuses the memory of its previous string.
class StringTable {
 public:
  /// False if the strings need too much memory. Invalidates the slot's previous text.
  bool set(std::uint16_t slot, std::string_view text) {
    constexpr std::size_t min_slots = 64;
    if (slot >= slots_.size()) slots_.resize(std::max(min_slots, std::bit_ceil(slot + std::size_t{1})));
    std::optional<std::string>& string = slots_[slot];
    const std::size_t bytes_before = string ? string->capacity() : 0;
    string ? string->assign(text) : string.emplace(text);
    bytes_ += string->capacity() - bytes_before;
    return bytes_ <= FxtReader::max_table_bytes;
  }
  /// False if the slot is not defined. The text is valid until the slot is set again.
  bool get(std::uint16_t slot, std::string_view& text) const {
    if (slot >= slots_.size() || !slots_[slot]) return false;
    text = *slots_[slot];
    return true;
  }

 private:
  std::vector<std::optional<std::string>> slots_;
  std::size_t bytes_ = 0;
};

struct ThreadIds {
  std::uint64_t pid = 0, tid = 0;
};

/// The tables and the clock of a provider. Without a provider record its id is 0.
struct Provider {
  std::uint32_t id = 0;
  std::uint64_t ticks_per_second = default_ticks_per_second;
  StringTable strings;
  std::array<std::optional<ThreadIds>, max_thread_slot + 1> threads;
};

class RecordParser {
 public:
  /// Parses a record of at least one word, whose header has the size of `bytes`. False if the format does not allow it.
  /// The record refers to the bytes and to the parser: it is valid until the next parse().
  bool parse(std::span<const std::byte> bytes, Record& record);
  /// Why the last parse() failed.
  const std::string& reason() const { return reason_; }
  const Provider& provider() const { return provider_; }

 private:
  // Each parses the words after the header. parse() reports words that are left.
  bool contents(std::uint64_t header, RecordCursor& words, Record& record);
  bool metadata(std::uint64_t header, RecordCursor& words, Record& record);
  bool initialization(std::uint64_t header, RecordCursor& words, Initialization& initialization);
  bool string(std::uint64_t header, RecordCursor& words, StringRecord& string);
  bool thread(std::uint64_t header, RecordCursor& words, ThreadRecord& thread);
  bool event(std::uint64_t header, RecordCursor& words, EventRecord& event);
  bool userspace_object(std::uint64_t header, RecordCursor& words, UserspaceObject& object);
  bool kernel_object(std::uint64_t header, RecordCursor& words, KernelObject& object);
  bool context_switch(std::uint64_t header, RecordCursor& words, ContextSwitch& change);
  bool wakeup(std::uint64_t header, RecordCursor& words, Wakeup& wakeup);

  // Parts of records; `what` is the name of the part for reasons. The parts of nearly all events are inline.
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
    if (text.ref.is_inline()) return characters(what, text.ref.inline_bytes(), words, text.text);
    if (text.ref.is_empty()) {
      text.text = {};
      return true;
    }
    return provider_.strings.get(text.ref.slot(), text.text) || refuse_ref(what, "string", ref);
  }

  bool thread(const char* what, std::uint64_t ref, RecordCursor& words, Thread& thread) {
    thread.ref = {static_cast<std::uint8_t>(ref)};
    if (!thread.ref.is_inline()) return slot_thread(what, thread);
    return word(what, words, thread.pid) && word(what, words, thread.tid);
  }
  bool slot_thread(const char* what, Thread& thread) {
    const auto& ids = provider_.threads[thread.ref.slot()];
    if (!ids) return refuse_ref(what, "thread", thread.ref.slot());
    thread.pid = ids->pid;
    thread.tid = ids->tid;
    return true;
  }

  /// True if these reserved bits are zero.
  bool reserved(std::uint64_t bits);

  // These return false.
  bool refuse(std::string reason);
  bool refuse_short(const char* what);
  bool refuse_ref(const char* what, const char* table, std::uint64_t slot);

  Provider provider_;
  std::array<Argument, max_arguments> arguments_;
  std::string reason_;
};

}  // namespace rtev::fxt::parsed
