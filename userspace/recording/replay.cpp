// SPDX-License-Identifier: MIT
#include "recording/replay.hpp"

#include <utility>
#include <variant>

#include "recording/argument_values.hpp"

namespace rtev {
namespace {

using namespace record;

constexpr std::uint32_t sched_source = Source{0, first_sched_stream}.pack();

std::unexpected<Error> foreign() {
  return std::unexpected(Error{.what = "cannot read recording",
                               .why = "it is an FXT trace, but not a recording of rtev-bpf",
                               .hint = "open it in a viewer, e.g. https://ui.perfetto.dev"});
}

/// The first event of another trace is refused as foreign: without any it may have been a recording.
std::unexpected<Error> without_events() {
  return std::unexpected(Error{.what = "cannot read recording",
                               .why = "it ends before its first event",
                               .hint = "its writer was killed as it began, or the file was cut: record again"});
}

template <typename Payload>
std::span<const std::byte> bytes_of(const Payload& payload) {
  return std::as_bytes(std::span(&payload, 1));
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::uint8_t flags_of(parsed::Arguments arguments) {
  if (arguments.empty()) return 0;
  const auto* const flags = Values(arguments).get<std::uint32_t>("flags");
  return flags != nullptr ? static_cast<std::uint8_t>(*flags) : 0;
}

}  // namespace

Result<void> Replay::feed(std::span<const std::byte> bytes) {
  if (failed_) return bad_recording("an earlier part is damaged");
  Result<void> result;
  const auto fed = reader_.feed(bytes, [&](const fxt::Record& record) {
    if (metadata_.ended() && result) result = bad_recording("there is data after its end");
    if (result) result = std::visit([&](const auto& one) { return take(one); }, record);
    if (!result) offset_ = reader_.offset();
    return result.has_value();
  });
  failed_ = !fed || !result;
  stream_.hand_out();
  if (!fed) return std::unexpected(fed.error());
  if (!result && result.error().hint.empty()) result.error().why += ", at byte " + std::to_string(offset_);
  return result;
}

Result<Replay::End> Replay::finish() {
  End end;
  if (failed_) {
    end.offset = reader_.offset();
    end.note = "the rest of the recording cannot be read";
  } else {
    const auto read = reader_.finish();
    if (!read) return std::unexpected(read.error());
    end.offset = read->offset;
    end.cut = read->cut();
    if (end.cut) {
      end.note = "it ends within a record: the file was cut";
    } else if (!metadata_.ended()) {
      end.note = "it has no summary: the tracer was killed or is still running";
    }
  }
  end.complete = metadata_.ended();
  if (end.complete) return end;
  if (!metadata_.has_header()) return without_events();
  metadata_.hand_out_header();
  stream_.finish(stream_.counted());
  return end;
}

Result<void> Replay::begin_event() {
  if (!metadata_.has_header()) return foreign();
  metadata_.hand_out_header();
  return {};
}

Result<void> Replay::take(const parsed::UserspaceObject& object) {
  if (object.arguments.empty()) return {};
  const std::string_view what = object.arguments.front().name.text;
  if (what == metadata_string) return define_string(object);
  if (what == metadata_source) return define_source(object);
  auto taken = sched_.take(what, object);
  if (taken && !*taken) taken = metadata_.take(what, object);
  // Unknown metadata is skipped.
  if (!taken) return std::unexpected(std::move(taken.error()));
  return {};
}

/// No version of FxtSink writes them, so the recording is damaged.
Result<void> Replay::take(const parsed::UnknownRecord& record) {
  return bad_recording("a record of type " + std::to_string(static_cast<unsigned>(record.type)) +
                       ", which recordings do not have");
}

Result<void> Replay::define_string(const parsed::UserspaceObject& object) {
  Values values(object.arguments);
  const StringId id = StringId::unpack(values.number<std::uint64_t>(metadata_string));
  const fxt::StringRef ref = object.name.ref;
  if (!values.complete() || ref.is_inline() || ref.is_empty() || static_cast<std::size_t>(id.kind) >= event_kind_count)
    return bad_recording("a string id is invalid");
  if (ref.slot() >= strings_.size()) strings_.resize(ref.slot() + std::size_t{1});
  forget_string(ref.slot());
  strings_[ref.slot()] = id;
  if (id.kind == EventKind::user_unit && !id.raw &&
      !stream_.user_event(id.scope, id.id, id.known ? object.name.text : std::string_view{}))
    return bad_recording("too many names of user events");
  return {};
}

Result<void> Replay::define_source(const parsed::UserspaceObject& object) {
  Values values(object.arguments);
  const auto source = values.number<std::uint32_t>(metadata_source);
  if (!values.complete() || object.process.ref.is_inline()) return bad_recording("a source without a thread");
  if (Source::unpack(source).slot >= ring_slots) return bad_recording("the slot of a ring is out of range");
  sources_[object.process.ref.slot()] = source;
  return {};
}

Result<void> Replay::take(const parsed::StringRecord& record) {
  forget_string(record.slot);
  return {};
}

Result<void> Replay::take(const parsed::ThreadRecord& record) {
  sources_[record.slot].reset();
  return {};
}

Result<void> Replay::take(const parsed::ProviderInfo&) {
  forget_slots();
  return {};
}

Result<void> Replay::take(const parsed::ProviderSection&) {
  forget_slots();
  return {};
}

/// The names of user events that can be known are those that strings in use stand for: so there are not too many.
void Replay::forget_string(std::uint16_t slot) {
  if (slot >= strings_.size() || !strings_[slot]) return;
  const StringId id = *std::exchange(strings_[slot], std::nullopt);
  if (id.known) static_cast<void>(stream_.user_event(id.scope, id.id, {}));
}

/// The tables of another provider are different.
void Replay::forget_slots() {
  for (std::size_t slot = 0; slot < strings_.size(); ++slot) forget_string(static_cast<std::uint16_t>(slot));
  sources_.fill(std::nullopt);
}

Result<void> Replay::take(const parsed::EventRecord& record) {
  if (record.category.text == drawn) return {};
  if (auto begun = begin_event(); !begun) return begun;
  const fxt::StringRef name = record.name.ref;
  const auto& source = sources_[record.thread.ref.slot()];
  if (name.is_inline() || name.slot() >= strings_.size() || !strings_[name.slot()] || !source)
    return bad_recording("an event refers to an undefined name or thread");
  const StringId& id = *strings_[name.slot()];
  Event event{.time = reader_.nanoseconds(record.time),
              .value = 0,
              .source = *source,
              .id = id.id,
              .kind = id.kind,
              .flags = flags_of(record.arguments)};
  const bool user = id.kind == EventKind::user_unit;
  if (record.type == fxt::instant) {
    if (!instant(event, id, record)) return bad_recording("an instant is invalid");
    return {};
  }
  if (record.type == fxt::counter) {
    const auto* const value =
        record.arguments.empty() ? nullptr : std::get_if<std::uint64_t>(&record.arguments.front().value);
    if (id.kind != EventKind::counter || id.raw || value == nullptr) return bad_recording("a counter is invalid");
    event.value = *value;
  } else {
    const bool begins = record.type == fxt::duration_begin;
    if ((!begins && record.type != fxt::duration_end) || (!user && id.kind != EventKind::begin) || id.raw)
      return bad_recording("a span is invalid");
    if (user) event.kind = begins ? EventKind::user_begin : EventKind::user_end;
    if (!user) event.kind = begins ? EventKind::begin : EventKind::end;
  }
  stream_.add(event);
  return {};
}

/// False if no FxtSink writes such a record.
bool Replay::instant(Event event, const StringId& id, const parsed::EventRecord& record) {
  Values values(record.arguments);
  const auto add = [&](std::span<const std::byte> payload = {}) {
    if (values.complete()) stream_.add(event, payload);
    return values.complete();
  };
  const auto* const bytes = values.get<fxt::Blob>("bytes");
  if (id.raw) {
    if (has_payload(event.kind))
      return bytes != nullptr && SchedReader::is_valid(event.kind, bytes->bytes) && add(bytes->bytes);
    event.value = values.number<std::uint64_t>("value");
    return add();
  }
  switch (event.kind) {
    case EventKind::begin:
      event.kind = EventKind::end;
      return values.has("stray") && add();
    case EventKind::alloc: {
      const auto* const buckets = values.get<fxt::Blob>("buckets");
      return buckets != nullptr && add(buckets->bytes);
    }
    case EventKind::lifecycle:
      event.value = static_cast<std::uint64_t>(values.number<std::int64_t>("value"));
      return add();
    case EventKind::user_unit:
      if (values.has("stray")) {
        event.kind = EventKind::user_end;
      } else if (const auto* const number = values.get<std::int64_t>("value")) {
        event.kind = EventKind::user_int;
        event.value = static_cast<std::uint64_t>(*number);
      } else if (const auto* const text = values.get<parsed::Text>("text")) {
        event.kind = EventKind::user_custom;
        return add(bytes_of(text->text));
      } else if (bytes != nullptr) {
        event.kind = EventKind::user_custom;
        return add(bytes->bytes);
      }
      return add();
    case EventKind::lost:
      return add(bytes_of(Loss{.words = values.number<std::uint64_t>("words"),
                               .from_ns = values.number<std::uint64_t>("from"),
                               .to_ns = values.number<std::uint64_t>("to")}));
    case EventKind::sample: {
      Sample sample{};
      sample_fields(sample, values);
      return sample.stack < StackTable::max_stacks && add(bytes_of(sample));
    }
    case EventKind::process:
      return add(bytes_of(ProcessRecord{.process = values.number<ProcessIndex>("index"),
                                        .peer = values.number<std::int32_t>("peer"),
                                        .detail = values.number<std::int64_t>("detail")}));
    default:
      return false;
  }
}

template <typename Record>
Result<void> Replay::scheduling(const Record& record, EventKind kind) {
  if (parsed::find(record.arguments, drawn) != nullptr) return {};
  if (auto begun = begin_event(); !begun) return begun;
  const auto payload = sched_.read(record);
  if (!payload) return bad_recording("a switch or wakeup refers to an undefined thread");
  stream_.add({.time = reader_.nanoseconds(record.time),
               .value = 0,
               .source = sched_source,
               .id = 0,
               .kind = kind,
               .flags = flags_of(record.arguments)},
              bytes_of(*payload));
  return {};
}

Result<void> Replay::take(const parsed::ContextSwitch& record) {
  return scheduling(record, EventKind::sched_switch);
}

Result<void> Replay::take(const parsed::Wakeup& record) {
  return scheduling(record, EventKind::wakeup);
}

}  // namespace rtev
