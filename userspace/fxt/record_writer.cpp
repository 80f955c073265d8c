// SPDX-License-Identifier: MIT
// FxtWriter's records other than events: names, scheduling, userspace objects. Layouts are those of the format's
// reference.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "fxt/fxt_writer_state.hpp"
#include "rtev/fxt_writer.hpp"

namespace rtev {
namespace {

using fxt::Argument, fxt::ArgumentType, fxt::RecordParts, fxt::Status;
namespace detail = fxt::detail;

constexpr unsigned object_arguments_shift = 40, scheduling_arguments_shift = 16;

/// The size of a record, and why it cannot be written.
class RecordCheck {
 public:
  explicit RecordCheck(const RecordParts& record) : words_(1 + record.words.size()) {
    if (argument_count(record) > fxt::max_arguments) {
      refuse(Status::over_limit, "it has more than 15 arguments");
      return;
    }
    add(record.name);
    add(record.first);
    add(record.further);
    if (words_ > fxt::max_record_words) refuse(Status::over_limit, "it has more than 4095 words");
  }

  static std::size_t argument_count(const RecordParts& record) { return record.first.size() + record.further.size(); }
  std::size_t words() const { return words_; }
  Status status() const { return status_; }
  std::string_view why() const { return why_; }

 private:
  void add(const std::span<const Argument>& arguments) {
    for (const auto& [name, value] : arguments) {
      add(name);
      words_ += detail::fixed_words(value.type());
      if (value.type() == ArgumentType::string) add(value.text());
      if (value.type() == ArgumentType::blob) words_ += detail::blob_words(value.blob().size());
    }
  }
  void add(const fxt::Text& text) {
    words_ += detail::text_words(text.inline_text());
    if (text.inline_text().size() > fxt::max_string_bytes)
      refuse(Status::over_limit, "a text has more than 32000 bytes");
    if (text.ref().is_inline()) refuse(Status::wrong_arguments, "a reference to inline text has no text");
  }
  /// The first reason counts.
  void refuse(Status status, std::string_view why) {
    if (status_ != Status::written) return;
    status_ = status;
    why_ = why;
  }

  std::size_t words_;
  Status status_ = Status::written;
  std::string_view why_;
};

std::uint64_t* put_text(std::uint64_t* out, const fxt::Text& text) {
  return detail::put_stream(out, text.inline_text().data(), text.inline_text().size());
}

std::uint64_t* put_arguments(std::uint64_t* out, std::span<const Argument> arguments) {
  for (const auto& [name, value] : arguments) {
    std::uint64_t* const header = out;
    out = put_text(out + 1, name);
    std::uint64_t high = 0;
    if (value.type() == ArgumentType::string) {
      high = detail::text_bits(value.text());
      out = put_text(out, value.text());
    } else if (value.type() == ArgumentType::blob) {
      high = value.blob().size();
      out = detail::put_stream(out, value.blob().data(), value.blob().size());
    } else if (detail::fixed_words(value.type()) == 2) {
      *out++ = value.bits();
    } else {
      high = value.bits();
    }
    *header =
        argument_header(value.type(), static_cast<std::size_t>(out - header), detail::text_bits(name)) | high << 32;
  }
  return out;
}

constexpr std::uint64_t scheduling_bits(fxt::SchedulingType type, std::uint16_t cpu) {
  return static_cast<std::uint64_t>(type) << 60 | std::uint64_t{cpu} << 20;
}

}  // namespace

Status FxtWriter::put_record(const RecordParts& record) {
  const RecordCheck check(record);
  if (check.status() != Status::written) {
    return refuse(check.status(), [&] {
      return Error{.what = "cannot write " + std::string(record.what), .why = std::string(check.why())};
    });
  }
  if (!reserve(check.words())) return Status::failed;
  std::uint64_t* out = std::exchange(next_, next_ + check.words());
  *out++ = record_header(record.type, check.words()) | record.header_bits | detail::text_bits(record.name) << 24 |
           std::uint64_t{RecordCheck::argument_count(record)} << record.arguments_shift;
  out = put_text(std::ranges::copy(record.words, out).out, record.name);
  put_arguments(put_arguments(out, record.first), record.further);
  return Status::written;
}

Status FxtWriter::write(const fxt::ContextSwitch& record, std::span<const Argument> further) {
  if (record.outgoing_state > fxt::ThreadState::dead) {
    return refuse(Status::wrong_arguments, [] {
      return Error{.what = "cannot write context switch", .why = "the format has no such thread state"};
    });
  }
  fxt::Arguments weights;
  if (record.incoming_weight) weights.add(known_name(fxt::KnownName::incoming_weight), *record.incoming_weight);
  if (record.outgoing_weight) weights.add(known_name(fxt::KnownName::outgoing_weight), *record.outgoing_weight);
  return put_record({.what = "context switch",
                     .type = fxt::RecordType::scheduling,
                     .header_bits = scheduling_bits(fxt::SchedulingType::context_switch, record.cpu) |
                                    static_cast<std::uint64_t>(record.outgoing_state) << 36,
                     .arguments_shift = scheduling_arguments_shift,
                     .words = std::array{record.time, record.outgoing_tid, record.incoming_tid},
                     .first = weights,
                     .further = further});
}

Status FxtWriter::write(const fxt::Wakeup& record, std::span<const Argument> further) {
  fxt::Arguments known;
  if (record.weight) known.add(known_name(fxt::KnownName::weight), *record.weight);
  if (record.waker_tid) known.add(known_name(fxt::KnownName::waker), fxt::Koid{*record.waker_tid});
  return put_record({.what = "wakeup",
                     .type = fxt::RecordType::scheduling,
                     .header_bits = scheduling_bits(fxt::SchedulingType::wakeup, record.cpu),
                     .arguments_shift = scheduling_arguments_shift,
                     .words = std::array{record.time, record.tid},
                     .first = known,
                     .further = further});
}

Status FxtWriter::name_process(std::uint64_t pid, fxt::Text name, std::span<const Argument> further) {
  return put_record({.what = "process name",
                     .type = fxt::RecordType::kernel_object,
                     .header_bits = static_cast<std::uint64_t>(fxt::KernelObjectType::process) << 16,
                     .arguments_shift = object_arguments_shift,
                     .words = std::span(&pid, 1),
                     .name = name,
                     .further = further});
}

Status FxtWriter::name_thread(std::uint64_t pid, std::uint64_t tid, fxt::Text name, std::span<const Argument> further) {
  // Without it, viewers assign the thread to pid 0.
  const Argument process{known_name(fxt::KnownName::process), fxt::Koid{pid}};
  return put_record({.what = "thread name",
                     .type = fxt::RecordType::kernel_object,
                     .header_bits = static_cast<std::uint64_t>(fxt::KernelObjectType::thread) << 16,
                     .arguments_shift = object_arguments_shift,
                     .words = std::span(&tid, 1),
                     .name = name,
                     .first = std::span(&process, 1),
                     .further = further});
}

Status FxtWriter::write(const fxt::UserspaceObject& record, std::span<const Argument> arguments) {
  const std::array words{record.address, record.pid};
  return put_record({.what = "userspace object",
                     .type = fxt::RecordType::userspace_object,
                     .header_bits = std::uint64_t{record.process.bits} << 16,
                     .arguments_shift = object_arguments_shift,
                     .words = std::span(words).first(record.process.is_inline() ? 2 : 1),
                     .name = record.name,
                     .further = arguments});
}

Status FxtWriter::buffer_full() {
  if (!reserve(1)) return Status::failed;
  *next_++ = metadata_header(fxt::MetadataType::provider_event, 1, state_->provider);
  return Status::written;
}

fxt::Text FxtWriter::known_name(fxt::KnownName name) {
  const auto index = static_cast<std::size_t>(name);
  fxt::StringRef& known = state_->known[index];
  if (!known.is_empty()) return known;
  // With only temporary slots left, a slot would save nothing: the name goes into the record.
  const std::string_view text = fxt::known_names[index];
  if (state_->strings.find(text) == 0 && !state_->strings.has_room_for(text)) return text;
  return known = intern(text);
}

}  // namespace rtev
