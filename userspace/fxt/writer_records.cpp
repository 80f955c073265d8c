// SPDX-License-Identifier: MIT
// FxtWriter's general path: records of any shape. What each looks like is in the format's reference.
#include <string>

#include "fxt/record_encoder.hpp"
#include "fxt/writer_state.hpp"
#include "rtev/fxt_writer.hpp"

namespace rtev {
namespace {

using fxt::Argument;
using fxt::RecordSize;
using fxt::RecordType;
using fxt::Status;
using fxt::encode::text_bits;
using Words = std::uint64_t*;

std::uint64_t scheduling_header(fxt::SchedulingType type, std::size_t words) {
  return fxt::record_header(RecordType::scheduling, words) | static_cast<std::uint64_t>(type) << 60;
}

constexpr std::string_view unknown_state = "its thread state is none of the format";

}  // namespace

/// Writes a record if its size allows; `fill` gets room for exactly that.
template <typename Fill>
Status FxtWriter::put_record(std::string_view what, const RecordSize& size, Fill fill) {
  if (size.status() != Status::written) {
    return refuse(size.status(),
                  [&] { return Error{.what = "cannot write " + std::string(what), .why = std::string(size.why())}; });
  }
  if (!reserve(size.words())) return Status::failed;
  fill(std::exchange(next_, next_ + size.words()));
  return Status::written;
}

Status FxtWriter::write(const fxt::EventRecord& record, std::span<const Argument> arguments) {
  const bool has_extra = fxt::has_extra_word(record.type);
  RecordSize size(std::size_t{2} + has_extra);
  size.add(record.thread).add(record.category).add(record.name).add(arguments);
  size.require(record.type <= fxt::EventType::flow_end, "its type is none of the format");
  size.require(has_extra || record.extra == 0, "its type has no extra word");
  return put_record("event", size, [&](Words out) {
    *out++ = fxt::event_header(record.type, size.words(), size.arguments(), record.thread.ref(),
                               text_bits(record.category), text_bits(record.name));
    *out++ = record.time;
    out = put_thread(out, record.thread);
    out = put_text(out, record.category);
    out = put_text(out, record.name);
    out = put_arguments(out, arguments);
    if (has_extra) *out = record.extra;
  });
}

Status FxtWriter::write(const fxt::ContextSwitch& record, std::span<const Argument> further) {
  fxt::Arguments weights;
  if (record.incoming_weight) weights.add(known_name(fxt::KnownName::incoming_weight), *record.incoming_weight);
  if (record.outgoing_weight) weights.add(known_name(fxt::KnownName::outgoing_weight), *record.outgoing_weight);
  RecordSize size(4);
  size.add(weights).add(further).require(record.outgoing_state <= fxt::ThreadState::dead, unknown_state);
  return put_record("context switch", size, [&](Words out) {
    *out++ = scheduling_header(fxt::SchedulingType::context_switch, size.words()) |
             std::uint64_t{size.arguments()} << 16 | std::uint64_t{record.cpu} << 20 |
             static_cast<std::uint64_t>(record.outgoing_state) << 36;
    *out++ = record.time;
    *out++ = record.outgoing_tid;
    *out++ = record.incoming_tid;
    put_arguments(put_arguments(out, weights), further);
  });
}

Status FxtWriter::write(const fxt::LegacySwitch& record) {
  RecordSize size(2);
  size.add(record.outgoing)
      .add(record.incoming)
      .require(record.outgoing_state <= fxt::ThreadState::dead, unknown_state);
  return put_record("context switch", size, [&](Words out) {
    *out++ = scheduling_header(fxt::SchedulingType::legacy_switch, size.words()) | std::uint64_t{record.cpu} << 16 |
             static_cast<std::uint64_t>(record.outgoing_state) << 24 | std::uint64_t{record.outgoing.ref().bits} << 28 |
             std::uint64_t{record.incoming.ref().bits} << 36 | std::uint64_t{record.outgoing_priority} << 44 |
             std::uint64_t{record.incoming_priority} << 52;
    *out++ = record.time;
    put_thread(put_thread(out, record.outgoing), record.incoming);
  });
}

Status FxtWriter::write(const fxt::Wakeup& record, std::span<const Argument> further) {
  fxt::Arguments known;
  if (record.weight) known.add(known_name(fxt::KnownName::weight), *record.weight);
  if (record.waker_tid) known.add(known_name(fxt::KnownName::waker), fxt::Koid{*record.waker_tid});
  RecordSize size(3);
  size.add(known).add(further);
  return put_record("wakeup", size, [&](Words out) {
    *out++ = scheduling_header(fxt::SchedulingType::wakeup, size.words()) | std::uint64_t{size.arguments()} << 16 |
             std::uint64_t{record.cpu} << 20;
    *out++ = record.time;
    *out++ = record.tid;
    put_arguments(put_arguments(out, known), further);
  });
}

Status FxtWriter::write(const fxt::KernelObject& record, std::span<const Argument> arguments) {
  return put_kernel_object(record, {}, arguments);
}

Status FxtWriter::name_process(std::uint64_t pid, fxt::Text name, std::span<const Argument> further) {
  return put_kernel_object({.type = fxt::KernelObjectType::process, .koid = pid, .name = name}, {}, further);
}

Status FxtWriter::name_thread(std::uint64_t pid, std::uint64_t tid, fxt::Text name, std::span<const Argument> further) {
  const Argument process{known_name(fxt::KnownName::process), fxt::Koid{pid}};
  return put_kernel_object({.type = fxt::KernelObjectType::thread, .koid = tid, .name = name}, {&process, 1}, further);
}

Status FxtWriter::put_kernel_object(const fxt::KernelObject& record, std::span<const Argument> first,
                                    std::span<const Argument> further) {
  RecordSize size(2);
  size.add(record.name).add(first).add(further);
  return put_record("kernel object", size, [&](Words out) {
    *out++ = fxt::record_header(RecordType::kernel_object, size.words()) |
             static_cast<std::uint64_t>(record.type) << 16 | text_bits(record.name) << 24 |
             std::uint64_t{size.arguments()} << 40;
    *out++ = record.koid;
    out = put_text(out, record.name);
    put_arguments(put_arguments(out, first), further);
  });
}

Status FxtWriter::write(const fxt::UserspaceObject& record, std::span<const Argument> arguments) {
  // Unlike a thread, a process has no word but its pid.
  const bool is_inline = record.process.is_inline();
  RecordSize size(std::size_t{2} + is_inline);
  if (!is_inline) size.add(record.process);
  size.add(record.name).add(arguments);
  return put_record("userspace object", size, [&](Words out) {
    *out++ = fxt::record_header(RecordType::userspace_object, size.words()) |
             std::uint64_t{record.process.ref().bits} << 16 | text_bits(record.name) << 24 |
             std::uint64_t{size.arguments()} << 40;
    *out++ = record.address;
    if (is_inline) *out++ = record.process.pid();
    put_arguments(put_text(out, record.name), arguments);
  });
}

Status FxtWriter::write(const fxt::BlobRecord& record) {
  RecordSize size(1);
  size.add(record.name).add_payload(record.payload.size());
  return put_record("blob", size, [&](Words out) {
    *out++ = fxt::record_header(RecordType::blob, size.words()) | text_bits(record.name) << 16 |
             std::uint64_t{record.payload.size()} << 32 | static_cast<std::uint64_t>(record.type) << 48;
    fxt::encode::put_stream(put_text(out, record.name), record.payload.data(), record.payload.size());
  });
}

Status FxtWriter::write(const fxt::LogRecord& record) {
  RecordSize size(2);
  size.add(record.thread).add_payload(record.message.size());
  return put_record("log record", size, [&](Words out) {
    *out++ = fxt::record_header(RecordType::log, size.words()) | std::uint64_t{record.message.size()} << 16 |
             std::uint64_t{record.thread.ref().bits} << 32;
    *out++ = record.time;
    fxt::encode::put_stream(put_thread(out, record.thread), record.message.data(), record.message.size());
  });
}

fxt::Text FxtWriter::known_name(fxt::KnownName name) {
  const auto index = static_cast<std::size_t>(name);
  fxt::ProviderTables& tables = state_->tables();
  if (!tables.known[index].is_empty()) return tables.known[index];
  // A slot that is used in turns would save nothing: the name goes into the record.
  const std::string_view text = fxt::known_names[index];
  if (tables.strings.find(text) == 0 && !tables.strings.has_room_for(text)) return text;
  return tables.known[index] = intern(text);
}

}  // namespace rtev
