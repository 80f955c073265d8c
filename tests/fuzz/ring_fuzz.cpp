// SPDX-License-Identifier: MIT
// Any bytes as a ring file, which changes and shrinks while it is read. The first byte selects how.
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fuzz/fuzzing.hpp"
#include "ring/reader_access.hpp"
#include "ring/ring_file.hpp"

namespace {

using namespace rtev;

enum Way : unsigned { skip_history = 1, extend = 2, shrink = 4, rewrite = 8, created = 16, ended = 32 };

/// The first byte, and a file of one ring with a few messages, without the unwritten rest.
std::vector<std::byte> well_formed(std::uint64_t ring_words, bool names, unsigned way) {
  const FileHeader header = make_header(1, ring_words, names);
  std::vector<std::uint64_t> words(header.data_offset / sizeof(std::uint64_t) + ring_words);
  std::memcpy(words.data(), &header, sizeof header);
  RingProducer ring(&words[header.headers_offset / sizeof(std::uint64_t)], std::span(words).last(ring_words));
  const std::array<std::uint64_t, alloc_bucket_count> payload{42};
  for (std::uint64_t time = 1; time < 6; ++time) {
    ring.append(message::first_word(3, false, message::lifecycle, 0), time, std::span(payload).first(1));
    ring.append(message::first_word(22, false, message::alloc, 0), time, payload);
    ring.append(message::first_word(5, true, message::custom, 1), time, std::span(payload).first(3));
    ring.append(message::first_word(2, true, message::unit, 2), time, {});
  }
  const auto file = std::as_bytes(std::span(words));
  std::vector<std::byte> bytes{static_cast<std::byte>(way)};
  bytes.insert(bytes.end(), file.begin(), file.begin() + std::min<std::ptrdiff_t>(std::ssize(file), 2048));
  return bytes;
}

void read(RingReader& reader, std::uint64_t budget) {
  std::uint64_t sum = 0;
  const Polled polled = reader.poll(
      [&](const Batch& batch) {
        for (const Event& event : batch.events()) {
          for (const std::byte byte : batch.payload(event)) sum += std::to_integer<unsigned>(byte);
          sum += reader.user_event_name(event.id).size();
        }
      },
      budget);
  // Used, so that the compiler does not remove the reads.
  if (!reader.accounting().balanced() || sum + polled.events == UINT64_MAX) std::abort();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t capacity,
                                               unsigned random) {
  // Words of a large ring are decoded in place, those of a small one are copied first.
  static const std::vector<std::byte> small = well_formed(64, false, 0), large = well_formed(8192, true, extend);
  return fuzz::mutate(random % 2 == 0 ? small : large, data, size, capacity);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const unsigned way = data[0];
  const std::span bytes(data + 1, size - 1);
  UniqueFd file = fuzz::file_of(bytes);
  const UniqueFd owner(::dup(file.get()));
  const auto resize = [&](std::size_t to) {
    if (::ftruncate(owner.get(), static_cast<off_t>(to)) != 0) std::abort();
  };
  if (FileHeader header; way & extend && bytes.size() >= sizeof header) {
    constexpr std::uint64_t max_bytes = 1 << 22;
    std::memcpy(&header, bytes.data(), sizeof header);
    resize(std::max<std::uint64_t>(bytes.size(), std::min(file_size(header) + sizeof(ProducerMark), max_bytes)));
  }

  const RingReader::Options options{.history =
                                        way & skip_history ? RingReader::History::skip : RingReader::History::deliver};
  auto reader =
      way & (created | ended)
          ? RingReaderAccess::adopt(
                file.release(), "fuzz", options,
                {.deliver_since_ns = 3, .created_ns = way & created ? 2u : 0, .ended_ns = way & ended ? 5 : UINT64_MAX})
          : RingReader::adopt(file.release(), "fuzz", options);
  if (!reader) return 0;
  static_cast<void>(reader->producer());
  read(*reader, 10);
  if (way & rewrite) {
    // As if another program wrote: every word changes a little.
    const std::size_t by = way >> 5;
    static_cast<void>(::pwrite(owner.get(), bytes.data(), bytes.size() / 2, static_cast<off_t>(by * 8)));
  }
  read(*reader, RingReader::default_budget_words);
  if (way & shrink) resize(bytes.size() / 2);
  for (int i = 0; i < 3; ++i) read(*reader, 1000);
  RingReaderAccess::seal(*reader);
  read(*reader, 1000);
  reader->finish([](const Batch&) {}, 7);
  return 0;
}
