// SPDX-License-Identifier: MIT
// Any records of rings that BPF saved: the restored files are rings whose words are all accounted for.
#include "fuzz/watched_reader.hpp"
#include "processes/rings/saved_rings.hpp"
#include "ring/ring_file.hpp"

namespace rtev::fuzz {
namespace {

constexpr std::uint32_t processes = 2;
constexpr std::uint64_t times = 4;

/// How an input describes a record: all of it is small, so that records fit together.
struct Piece {
  std::uint8_t type, process, announced_ns, domain;
  std::uint16_t begin, length;  ///< words
  std::uint8_t far;             ///< not 0: positions count from near the greatest number
  std::uint8_t payload_words;
};

void add(SavedRings& rings, const Piece& piece, Input& input) {
  rtev_saved record{.announced_ns = piece.announced_ns % times,
                    .begin = piece.begin,
                    .end = std::uint64_t{piece.begin} + piece.length,
                    .tgid = 1 + piece.process % processes,
                    .uid = 1000u + piece.process % 2,
                    .type = static_cast<__u16>(piece.type & 7u),
                    .domain = piece.domain,
                    .bytes = 0};
  if (piece.far != 0) {
    record.begin += UINT64_MAX - 70'000;
    record.end += UINT64_MAX - 70'000;
  }
  std::vector<std::byte> payload;
  if (record.type == RTEV_SAVED_RING && piece.far == 0) {
    // A header that is right, but for what the input says.
    FileHeader header = make_header(1 + piece.domain % 4, std::uint64_t{64} << piece.length % 4, piece.begin % 2 != 0);
    record.end = file_size(header);
    if (piece.payload_words != 0) {
      const auto damage = input.take<std::uint64_t>();
      std::memcpy(reinterpret_cast<std::byte*>(&header) + piece.payload_words % 8 * 8, &damage, sizeof damage);
    }
    const auto bytes = std::as_bytes(std::span(&header, 1));
    payload.assign(bytes.begin(), bytes.end());
  } else {
    const std::size_t size = record.type == RTEV_SAVED_NAME ? piece.payload_words : piece.payload_words * 8u;
    const auto bytes = std::as_bytes(input.take_bytes(size));
    payload.assign(bytes.begin(), bytes.end());
  }
  record.bytes = static_cast<__u32>(payload.size());
  rings.add(record, payload);
}

void read(SavedRingFile file) {
  auto opened = RingReader::adopt(file.fd.release(), "saved", {});
  check(opened.has_value(), "a restored file is a ring");
  WatchedReader reader(std::move(*opened));
  for (const CutDomain& cut : file.cut) RingReaderAccess::expect_words(*reader, cut.domain, cut.written);
  for (int i = 0; i < 4; ++i) reader.poll(RingReader::default_budget_words);
  RingReaderAccess::seal(*reader);
  reader.poll(RingReader::default_budget_words);
  reader.finish();
  check((*reader).accounting().unread == 0, "nothing is left unread of a ring that is not written");
}

}  // namespace

void saved_rings(Bytes bytes) {
  Input input(bytes);
  SavedRings rings(std::size_t{1} << 20);
  while (!input.empty()) add(rings, input.take<Piece>(), input);
  check(rings.size() <= processes * times, "a ring for each process and time");
  for (std::uint32_t process = 1; process <= processes; ++process) {
    for (const std::uint64_t until : {std::uint64_t{1}, UINT64_MAX}) {
      if (auto file = rings.take(static_cast<std::int32_t>(process), 0, until)) read(std::move(*file));
    }
  }
  check(rings.size() == 0, "rings that were taken are forgotten");
}

}  // namespace rtev::fuzz
