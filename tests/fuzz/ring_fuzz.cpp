// SPDX-License-Identifier: MIT
// Any bytes as a ring file, which changes and shrinks between polls. The first byte selects how.
#include "fuzz/watched_reader.hpp"
#include "ring/ring_file.hpp"

namespace rtev::fuzz {
namespace {

enum Way : unsigned { skip_history = 1, extend = 2, shrink = 4, rewrite = 8, created = 16, ended = 32 };

Result<RingReader> adopt(int fd, unsigned way) {
  const RingReader::Options options{.history =
                                        way & skip_history ? RingReader::History::skip : RingReader::History::deliver};
  if ((way & (created | ended)) == 0) return RingReader::adopt(fd, "fuzz", options);
  return RingReaderAccess::adopt(
      UniqueFd(fd), "fuzz", options,
      {.deliver_since_ns = 3, .created_ns = way & created ? 2u : 0, .ended_ns = way & ended ? 5 : UINT64_MAX});
}

}  // namespace

void ring(Bytes input) {
  if (input.empty()) return;
  const unsigned way = input[0];
  const Bytes bytes = input.subspan(1);
  static const UniqueFd file = file_of({});
  resize(file, 0);
  const auto write = [&](std::size_t size, std::size_t at) {
    check(::pwrite(file.get(), bytes.data(), size, static_cast<off_t>(at)) == static_cast<ssize_t>(size), "pwrite");
  };
  write(bytes.size(), 0);
  if (FileHeader header; way & extend && bytes.size() >= sizeof header) {
    constexpr std::uint64_t max_bytes = 1 << 22;
    std::memcpy(&header, bytes.data(), sizeof header);
    resize(file, std::max<std::uint64_t>(bytes.size(), std::min(file_size(header) + sizeof(ProducerMark), max_bytes)));
  }

  auto opened = adopt(::dup(file.get()), way);
  if (!opened) return;
  WatchedReader reader(std::move(*opened));
  static_cast<void>((*reader).producer());
  reader.poll(10);
  if (way & rewrite) write(bytes.size() / 2, std::size_t{way >> 5} * 8);  // as if another program wrote
  reader.poll(RingReader::default_budget_words);
  if (way & shrink) resize(file, bytes.size() / 2);
  for (int i = 0; i < 3; ++i) reader.poll(1000);
  RingReaderAccess::seal(*reader);
  reader.poll(1000);
  reader.finish();
}

}  // namespace rtev::fuzz
