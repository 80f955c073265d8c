// SPDX-License-Identifier: MIT
#include "unit/fxt/trace_reading.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <sstream>

namespace rtev::test {
namespace {

using namespace fxt;

/// Writes records as lines.
class Shower {
 public:
  explicit Shower(Refs refs) : refs_(refs) {}
  std::string text() const { return out_.str(); }

  void operator()(const parsed::ProviderInfo& it) { out_ << "provider " << it.id << ' ' << quoted(it.name); }
  void operator()(const parsed::ProviderSection& it) { out_ << "section " << it.id; }
  void operator()(const parsed::BufferFull& it) { out_ << "buffer full " << it.id; }
  void operator()(const parsed::Initialization& it) {
    out_ << "initialization " << it.ticks_per_second;
    if (it.base) out_ << " base " << it.base->time << " wall " << it.base->wall_ns;
  }
  void operator()(const parsed::StringRecord& it) { out_ << "string " << it.slot << ' ' << quoted(it.text); }
  void operator()(const parsed::ThreadRecord& it) {
    out_ << "thread " << unsigned{it.slot} << ' ' << it.pid << '/' << it.tid;
  }
  void operator()(const parsed::EventRecord& it) {
    out_ << "event " << to_string(it.type) << " t=" << it.time << " thread=";
    show(it.thread);
    out_ << " category=";
    show(it.category);
    out_ << " name=";
    show(it.name);
    show(it.arguments);
    out_ << " extra=" << it.extra;
  }
  void operator()(const parsed::UserspaceObject& it) {
    out_ << "userspace object " << it.address << " process=";
    show(it.process);
    out_ << " name=";
    show(it.name);
    show(it.arguments);
  }
  void operator()(const parsed::KernelObject& it) {
    out_ << "kernel object " << it.koid << " type=" << number(it.type) << " name=";
    show(it.name);
    show(it.arguments);
  }
  void operator()(const parsed::ContextSwitch& it) {
    out_ << "switch t=" << it.time << " cpu=" << it.cpu << " out=" << it.outgoing_tid
         << " state=" << number(it.outgoing_state) << " in=" << it.incoming_tid;
    show(it.arguments);
  }
  void operator()(const parsed::Wakeup& it) {
    out_ << "wakeup t=" << it.time << " cpu=" << it.cpu << " tid=" << it.tid;
    show(it.arguments);
  }
  void operator()(const parsed::UnknownRecord& it) {
    out_ << "unknown " << it.type << " of " << it.bytes.size() << " bytes";
  }

 private:
  template <typename Enum>
  static unsigned number(Enum value) {
    return static_cast<unsigned>(value);
  }
  static std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }
  static std::string quoted(std::span<const std::byte> bytes) {
    return quoted(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

  void show(const parsed::Text& text) {
    out_ << quoted(text.text);
    if (refs_ == Refs::hidden) return;
    if (text.ref.is_inline()) {
      out_ << '!';
    } else if (!text.ref.is_empty()) {
      out_ << '#' << text.ref.slot();
    }
  }
  void show(const parsed::Thread& thread) {
    out_ << thread.pid << '/' << thread.tid;
    if (refs_ == Refs::hidden) return;
    if (thread.ref.is_inline()) {
      out_ << '!';
    } else {
      out_ << '#' << unsigned{thread.ref.slot()};
    }
  }
  void show(parsed::Arguments arguments) {
    for (const parsed::Argument& argument : arguments) {
      out_ << " (";
      show(argument.name);
      out_ << ' ' << to_string(argument.type());
      std::visit([&](const auto& value) { show_value(value); }, argument.value);
      out_ << ')';
    }
  }
  void show_value(bool value) { out_ << (value ? " true" : " false"); }
  void show_value(double value) { out_ << " bits " << std::bit_cast<std::uint64_t>(value); }
  void show_value(const parsed::Text& value) {
    out_ << ' ';
    show(value);
  }
  void show_value(Pointer value) { out_ << ' ' << value.address; }
  void show_value(Koid value) { out_ << ' ' << value.id; }
  void show_value(Blob value) { out_ << ' ' << quoted(value.bytes); }
  template <std::integral Integer>
  void show_value(Integer value) {
    out_ << ' ' << value;
  }

  Refs refs_;
  std::ostringstream out_;
};

}  // namespace

std::string show(const Record& record, Refs refs) {
  Shower shower(refs);
  std::visit(shower, record);
  return shower.text();
}

Reading read_trace(std::span<const std::byte> trace, std::size_t piece) {
  FxtReader reader;
  Reading reading;
  const auto fail = [&](const Error& error) {
    reading.error = error.message();
    return reading;
  };
  while (!trace.empty()) {
    const auto next = trace.first(std::min(piece, trace.size()));
    const std::vector<std::byte> own(next.begin(), next.end());
    const auto fed = reader.feed(own, [&](const Record& record) {
      reading.records.push_back(show(record));
      reading.offsets.push_back(reader.offset());
    });
    if (!fed) return fail(fed.error());
    trace = trace.subspan(next.size());
  }
  const auto end = reader.finish();
  if (!end) return fail(end.error());
  reading.end = *end;
  return reading;
}

std::vector<std::byte> file_bytes(const TraceWords& words) {
  std::vector<std::byte> bytes;
  for (const std::uint64_t word : words) {
    for (unsigned i = 0; i < word_bytes; ++i) bytes.push_back(static_cast<std::byte>(word >> 8 * i & 0xff));
  }
  return bytes;
}

TraceWords prelude() {
  return {0x0016'5478'4604'0010,
          0x0000'0002'0001'0022,
          0x6367,
          0x0000'0005'0002'0022,
          0x72'6f6e'696d,
          0x0000'0001'0003'0022,
          0x6e,
          0x0000'0000'0001'0033,
          100,
          101};
}

TraceWords after_prelude(std::initializer_list<std::uint64_t> words) {
  TraceWords all = prelude();
  all.insert(all.end(), words);
  return all;
}

std::uint64_t stream_word(std::string_view text) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    word |= std::uint64_t{static_cast<unsigned char>(text[i])} << 8 * i;
  }
  return word;
}

}  // namespace rtev::test
