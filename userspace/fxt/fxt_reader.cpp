// SPDX-License-Identifier: MIT
// FxtReader: finds the records in the pieces of a trace.
#include "rtev/fxt_reader.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "fxt/record_parser.hpp"

namespace rtev {
namespace {

using namespace fxt;
using Bytes = std::span<const std::byte>;

constexpr std::string_view not_a_trace = "this is not a trace in the Fuchsia format";

std::string_view name_of(RecordType type) {
  static constexpr std::string_view names[] = {"metadata",         "initialization", "string",
                                               "thread",           "event",          "unknown record",
                                               "userspace object", "kernel object",  "scheduling"};
  if (type == RecordType::large) return "large record";
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(names) ? names[index] : "unknown record";
}

RecordType type_of(std::uint64_t header) {
  return static_cast<RecordType>(bits(header, 0, 4));
}

}  // namespace

struct FxtReader::State {
  enum class Step { next, stop, failed };

  parsed::RecordParser parser;
  Record record;
  std::uint64_t offset = 0;
  /// The beginning of a record that the last piece cut.
  std::array<std::byte, max_record_words * word_bytes> cut;
  std::size_t cut_bytes = 0;
  bool stopped = false;
  std::optional<Error> error;

  /// Size in bytes of the record with this header; 0 and an error if it is invalid.
  std::size_t measure(std::uint64_t header);
  /// Reads a whole record.
  Step read(Bytes bytes, Call call, void* consumer);
  /// Completes and reads the record that was cut, if there is one. Removes its bytes from the front of `bytes`.
  Step read_cut(Bytes& bytes, Call call, void* consumer);
  Step read_all(Bytes bytes, Call call, void* consumer);
  /// Moves bytes to `cut` until it has `wanted` bytes; false if there are too few.
  bool move(Bytes& bytes, std::size_t wanted);

  Error bad(std::string_view record_name, std::string_view reason) const {
    std::string why = "at byte " + std::to_string(offset) + ", ";
    why.append(record_name).append(": ").append(reason);
    return {.what = "bad trace record", .why = std::move(why)};
  }
};

std::size_t FxtReader::State::measure(std::uint64_t header) {
  if (offset == 0 && header != magic) [[unlikely]] {
    error = bad("magic number", not_a_trace);
    return 0;
  }
  const std::size_t words = bits(header, 4, 12);
  if (type_of(header) == RecordType::large || words == 0) [[unlikely]] {
    error = bad(name_of(type_of(header)),
                type_of(header) == RecordType::large ? "large records are not supported" : "its size is 0");
    return 0;
  }
  return words * word_bytes;
}

FxtReader::State::Step FxtReader::State::read(Bytes bytes, Call call, void* consumer) {
  if (offset == 0) [[unlikely]] {
    offset = bytes.size();  // the magic number, which measure() checked
    return Step::next;
  }
  if (!parser.parse(bytes, record)) [[unlikely]] {
    error = bad(name_of(type_of(load_word(bytes.data()))), parser.reason());
    return Step::failed;
  }
  const bool wants_more = call(consumer, record);
  offset += bytes.size();
  return wants_more ? Step::next : Step::stop;
}

bool FxtReader::State::move(Bytes& bytes, std::size_t wanted) {
  const std::size_t count = std::min(wanted - cut_bytes, bytes.size());
  std::ranges::copy(bytes.first(count), cut.begin() + static_cast<std::ptrdiff_t>(cut_bytes));
  cut_bytes += count;
  bytes = bytes.subspan(count);
  return cut_bytes == wanted;
}

FxtReader::State::Step FxtReader::State::read_cut(Bytes& bytes, Call call, void* consumer) {
  if (cut_bytes == 0) return Step::next;
  if (cut_bytes < word_bytes && !move(bytes, word_bytes)) return Step::next;
  const std::size_t size = measure(load_word(cut.data()));
  if (size == 0) return Step::failed;
  if (!move(bytes, size)) return Step::next;
  cut_bytes = 0;
  return read(Bytes(cut).first(size), call, consumer);
}

FxtReader::State::Step FxtReader::State::read_all(Bytes bytes, Call call, void* consumer) {
  if (const Step step = read_cut(bytes, call, consumer); step != Step::next) return step;
  while (bytes.size() >= word_bytes) {
    const std::size_t size = measure(load_word(bytes.data()));
    if (size == 0) [[unlikely]]
      return Step::failed;
    if (size > bytes.size()) break;
    if (const Step step = read(bytes.first(size), call, consumer); step != Step::next) return step;
    bytes = bytes.subspan(size);
  }
  move(bytes, cut_bytes + bytes.size());
  return Step::next;
}

FxtReader::FxtReader() : state_(std::make_unique<State>()) {}
FxtReader::FxtReader(FxtReader&&) noexcept = default;
FxtReader& FxtReader::operator=(FxtReader&&) noexcept = default;
FxtReader::~FxtReader() = default;

Result<FxtReader::Fed> FxtReader::feed_bytes(Bytes bytes, Call call, void* consumer) {
  State& state = *state_;
  if (state.error) return std::unexpected(*state.error);
  if (state.stopped) return Fed::stopped;
  state.stopped = true;  // also if the consumer throws: the bytes after its record are lost
  const State::Step step = state.read_all(bytes, call, consumer);
  if (step == State::Step::failed) return std::unexpected(*state.error);
  state.stopped = step == State::Step::stop;
  return state.stopped ? Fed::stopped : Fed::all;
}

Result<FxtReader::End> FxtReader::finish() const {
  const State& state = *state_;
  if (state.error) return std::unexpected(*state.error);
  if (state.offset == 0) {
    if (state.cut_bytes == 0) return std::unexpected(state.bad("magic number", "missing, the trace is empty"));
    std::array<std::byte, word_bytes> beginning{};
    std::ranges::copy(std::span(state.cut).first(state.cut_bytes), beginning.begin());
    if (load_word(beginning.data()) != bits(magic, 0, static_cast<unsigned>(state.cut_bytes * 8)))
      return std::unexpected(state.bad("magic number", not_a_trace));
  }
  return End{.offset = state.offset, .bytes_left = state.cut_bytes};
}

std::uint64_t FxtReader::offset() const {
  return state_->offset;
}

std::uint32_t FxtReader::provider() const {
  return state_->parser.provider().id;
}

std::uint64_t FxtReader::ticks_per_second() const {
  return state_->parser.provider().ticks_per_second;
}

}  // namespace rtev
