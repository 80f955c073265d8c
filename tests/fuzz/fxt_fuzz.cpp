// SPDX-License-Identifier: MIT
// Any bytes as a trace. The first byte selects the size of the pieces they are read in, which must not change the
// result.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzzing.hpp"
#include "rtev/fxt_reader.hpp"
#include "rtev/fxt_writer.hpp"

namespace {

using namespace rtev;

/// The first byte, and a trace with a record of every kind.
std::vector<std::byte> well_formed(std::uint8_t way) {
  FxtMemory memory;
  FxtWriter writer(memory);
  const auto thread = writer.thread(100, 101);
  const auto gc = writer.intern("gc");
  const std::byte payload[] = {std::byte{1}, std::byte{2}, std::byte{3}};
  writer.name_process(100, "main.exe");
  writer.name_thread(100, 101, gc);
  fxt::Arguments arguments;
  arguments.add(gc, true).add("b", 1).add("c", 2u).add("d", std::int64_t{3}).add("e", 4.5).add("k", std::uint64_t{9});
  arguments.add("f", gc).add("g", "text").add("h", fxt::Pointer{5}).add("i", fxt::Koid{6}).add("j", fxt::Blob{payload});
  const auto compose = [&](fxt::EventType type) { return writer.compose(type, thread, gc, gc); };
  for (const auto type : {fxt::instant, fxt::duration_begin, fxt::duration_end}) writer.write(compose(type), 1);
  writer.write(compose(fxt::counter), 2, fxt::CounterId{3});
  writer.write(compose(fxt::duration_complete), 2, fxt::EndTime{3});
  for (const auto type : {fxt::async_begin, fxt::async_instant, fxt::async_end})
    writer.write(compose(type), 2, fxt::AsyncId{3});
  for (const auto type : {fxt::flow_begin, fxt::flow_step, fxt::flow_end})
    writer.write(compose(type), 2, fxt::FlowId{3});
  writer.write(writer.compose(fxt::instant, thread, gc, gc, {{fxt::ArgumentType::blob, gc}}), 20, fxt::Blob{payload});
  writer.write(fxt::ContextSwitch{.time = 21, .cpu = 1, .outgoing_tid = 101, .incoming_weight = fxt::idle_weight});
  writer.write(fxt::Wakeup{.time = 23, .cpu = 1, .tid = 101, .weight = 1, .waker_tid = 7});
  writer.write(fxt::UserspaceObject{.address = 9, .process = thread, .name = "object"}, arguments);
  writer.write(fxt::UserspaceObject{.address = 9, .pid = 100}, arguments);
  writer.buffer_full();
  writer.flush();
  std::vector<std::byte> bytes{static_cast<std::byte>(way)};
  bytes.insert(bytes.end(), memory.bytes().begin(), memory.bytes().end());
  return bytes;
}

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
    if (it.ticks_per_second == 0) std::abort();
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

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t capacity, unsigned) {
  static const std::vector<std::byte> trace = well_formed(8);
  return fuzz::mutate(trace, data, size, capacity);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto trace = std::as_bytes(std::span(data + 1, size - 1));
  const Outcome whole = read(trace, SIZE_MAX);
  if (read(trace, std::size_t{1} + data[0]) != whole) std::abort();
  if (whole.error.empty() && whole.offset + whole.bytes_left != trace.size()) std::abort();
  return 0;
}
