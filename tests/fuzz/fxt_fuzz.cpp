// SPDX-License-Identifier: MIT
// Any bytes as a trace. The first byte selects the size of the pieces they are read in, which must not change the
// result.
#include <functional>

#include "fuzz/fuzzing.hpp"
#include "rtev/fxt_reader.hpp"

namespace rtev::fuzz {
namespace {

/// Folds everything in a record into a number, so that all of it is read.
class Digest {
 public:
  std::uint64_t value() const { return value_; }

  void add(std::uint64_t number) { value_ = (value_ ^ number) * 0x100000001b3 + 1; }
  void add(std::string_view text) { add(std::uint64_t{text.size()} + std::hash<std::string_view>()(text)); }
  void add(std::span<const std::byte> bytes) {
    add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

  void operator()(const fxt::parsed::ProviderInfo& it) { all(it.id, it.name); }
  void operator()(const fxt::parsed::ProviderSection& it) { all(it.id); }
  void operator()(const fxt::parsed::BufferFull& it) { all(it.id); }
  void operator()(const fxt::parsed::Initialization& it) {
    all(it.ticks_per_second, it.base ? it.base->time + it.base->wall_ns : 0);
    check(it.ticks_per_second != 0, "a clock that runs");
  }
  void operator()(const fxt::parsed::StringRecord& it) { all(it.slot, it.text); }
  void operator()(const fxt::parsed::ThreadRecord& it) { all(it.slot, it.pid, it.tid); }
  void operator()(const fxt::parsed::EventRecord& it) {
    all(it.type, it.time, it.thread, it.category, it.name, it.arguments, it.extra);
  }
  void operator()(const fxt::parsed::UserspaceObject& it) { all(it.address, it.process, it.name, it.arguments); }
  void operator()(const fxt::parsed::KernelObject& it) { all(it.type, it.koid, it.name, it.arguments); }
  void operator()(const fxt::parsed::ContextSwitch& it) {
    all(it.time, it.cpu, it.outgoing_tid, it.outgoing_state, it.incoming_tid, it.arguments);
  }
  void operator()(const fxt::parsed::Wakeup& it) { all(it.time, it.cpu, it.tid, it.arguments); }
  void operator()(const fxt::parsed::UnknownRecord& it) { all(it.type, it.bytes); }

 private:
  template <typename... Fields>
  void all(const Fields&... fields) {
    (field(fields), ...);
  }
  template <typename Field>
  void field(const Field& it) {
    if constexpr (std::is_enum_v<Field> || std::integral<Field>) {
      add(static_cast<std::uint64_t>(it));
    } else {
      add(it);
    }
  }
  void add(const fxt::parsed::Text& text) { all(text.text, text.ref.bits); }
  void add(const fxt::parsed::Thread& thread) { all(thread.pid, thread.tid, thread.ref.bits); }
  void add(fxt::parsed::Arguments arguments) {
    for (const auto& argument : arguments) {
      all(argument.name, argument.type());
      std::visit([this](const auto& value) { this->value(value); }, argument.value);
    }
  }
  void value(double it) { add(std::bit_cast<std::uint64_t>(it)); }
  void value(fxt::Pointer it) { add(it.address); }
  void value(fxt::Koid it) { add(it.id); }
  void value(fxt::Blob it) { add(it.bytes); }
  void value(const fxt::parsed::Text& it) { add(it); }
  template <std::integral T>
  void value(T it) {
    add(static_cast<std::uint64_t>(it));
  }

  std::uint64_t value_ = 0;
};

struct Outcome {
  std::uint64_t digest = 0;
  std::uint64_t records = 0;
  std::string error;
  std::uint64_t offset = 0;
  std::size_t bytes_left = 0;

  bool operator==(const Outcome&) const = default;
};

Outcome read(std::span<const std::byte> trace, std::size_t piece) {
  FxtReader reader;
  Outcome outcome;
  Digest digest;
  while (!trace.empty()) {
    const auto next = trace.first(std::min(piece, trace.size()));
    const std::vector<std::byte> own(next.begin(), next.end());  // freed when the next piece is read
    const auto fed = reader.feed(own, [&](const fxt::Record& record) {
      std::visit(digest, record);
      digest.add(reader.offset());
      digest.add(reader.nanoseconds(outcome.records++));
    });
    if (!fed) break;
    trace = trace.subspan(next.size());
  }
  outcome.digest = digest.value();
  const auto end = reader.finish();
  if (!end) {
    outcome.error = end.error().message();
  } else {
    outcome.offset = end->offset;
    outcome.bytes_left = end->bytes_left;
  }
  return outcome;
}

}  // namespace

void fxt(Bytes input) {
  if (input.empty()) return;
  const auto trace = std::as_bytes(input.subspan(1));
  const Outcome whole = read(trace, SIZE_MAX);
  check(read(trace, std::size_t{1} + input[0]) == whole, "the size of the pieces does not matter");
  if (whole.error.empty()) check(whole.offset + whole.bytes_left == trace.size(), "each byte is accounted for");
}

}  // namespace rtev::fuzz
