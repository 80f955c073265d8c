// SPDX-License-Identifier: MIT
// FxtWriter's references: strings and threads, and the records that define them.
#include <string>

#include "fxt/record_encoder.hpp"
#include "fxt/writer_state.hpp"
#include "rtev/fxt_writer.hpp"

namespace rtev {
namespace {

constexpr std::size_t thread_record_words = 3;

}  // namespace

fxt::StringRef FxtWriter::intern(std::string_view text) {
  fxt::StringSlots& strings = state_->tables().strings;
  if (text.empty()) return {};
  if (const std::uint16_t slot = strings.find(text); slot != 0) return {slot};
  if (!strings.has_room_for(text)) return temporary(text);
  // The record first: a text that could not be defined must not be found later.
  if (!define_string(strings.next_interned(), text)) return {};
  return {strings.intern(text)};
}

fxt::StringRef FxtWriter::temporary(std::string_view text) {
  if (text.empty()) return {};
  const std::uint16_t slot = state_->tables().strings.take_temporary();
  if (slot == 0) {
    refuse(fxt::Status::over_limit, [&] {
      return Error{.what = "cannot name a string",
                   .subject = std::string(text),
                   .why = "no slot is left: the writer was given no temporary ones"};
    });
    return {};
  }
  if (!define_string(slot, text)) return {};
  return {slot};
}

fxt::StringRef FxtWriter::set_string(std::uint16_t slot, std::string_view text) {
  if (!state_->tables().strings.is_fixed(slot)) {
    refuse(fxt::Status::over_limit, [&] {
      return Error{.what = "cannot set string slot",
                   .subject = std::to_string(slot),
                   .why = "fixed slots are 1 to " + std::to_string(state_->options.fixed_strings)};
    });
    return {};
  }
  if (!define_string(slot, text)) return {};
  return {slot};
}

bool FxtWriter::is_lasting(fxt::StringRef ref) const {
  return ref.is_empty() || state_->tables().strings.is_interned(ref.bits);
}

bool FxtWriter::define_string(std::uint16_t slot, std::string_view text) {
  if (text.size() > fxt::max_string_bytes) {
    refuse(fxt::Status::over_limit, [&] {
      return Error{.what = "cannot write string",
                   .subject = std::string(text.substr(0, 32)) + "…",
                   .why = "it has " + std::to_string(text.size()) + " bytes, 32000 are allowed"};
    });
    return false;
  }
  const std::size_t words = 1 + fxt::stream_words(text.size());
  if (!reserve(words)) return false;
  *next_++ =
      fxt::record_header(fxt::RecordType::string, words) | std::uint64_t{slot} << 16 | std::uint64_t{text.size()} << 32;
  next_ = fxt::encode::put_stream(next_, text.data(), text.size());
  return true;
}

fxt::ThreadRef FxtWriter::thread(std::uint64_t pid, std::uint64_t tid) {
  // Room first: a thread that could not be defined must not be found later.
  if (!reserve(thread_record_words)) return {};
  fxt::ThreadSlots& threads = state_->tables().threads;
  if (const std::uint8_t slot = threads.find(pid, tid); slot != 0) return {slot};
  const std::uint8_t slot = threads.replace(pid, tid);
  if (slot == 0) {
    refuse(fxt::Status::over_limit, [&] {
      return Error{.what = "cannot name thread",
                   .subject = std::to_string(tid),
                   .why = "the writer was told that all slots are fixed"};
    });
    return {};
  }
  define_thread(slot, pid, tid);
  return {slot};
}

fxt::ThreadRef FxtWriter::set_thread(std::uint8_t slot, std::uint64_t pid, std::uint64_t tid) {
  if (!state_->tables().threads.is_fixed(slot)) {
    refuse(fxt::Status::over_limit, [&] {
      return Error{.what = "cannot set thread slot",
                   .subject = std::to_string(slot),
                   .why = "fixed slots are 1 to " + std::to_string(state_->options.fixed_threads)};
    });
    return {};
  }
  if (!reserve(thread_record_words)) return {};
  define_thread(slot, pid, tid);
  return {slot};
}

void FxtWriter::define_thread(std::uint8_t slot, std::uint64_t pid, std::uint64_t tid) {
  next_[0] = fxt::record_header(fxt::RecordType::thread, thread_record_words) | std::uint64_t{slot} << 16;
  next_[1] = pid;
  next_[2] = tid;
  next_ += thread_record_words;
}

}  // namespace rtev
