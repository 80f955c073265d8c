// SPDX-License-Identifier: MIT
// Any bytes as the header of a ring file: an accepted one describes parts that lie in the file and apart from each
// other, and all of them can be read. A second header, which replaces the first, follows it in the input.
#include "fuzz/fuzzing.hpp"
#include "ring/ring_map.hpp"

namespace rtev::fuzz {
namespace {

/// Has room for any sum of products of what a header holds.
using Wide = unsigned __int128;

void check_parts(const Layout& layout) {
  check(layout.rings >= 1 && layout.rings <= max_domains, "number of rings");
  check(layout.ring_words >= 1 && (layout.ring_words & (layout.ring_words - 1)) == 0, "words are a power of two");
  check(layout.ring_header_stride >= 16, "room for the indices");
  for (const std::uint64_t offset : {layout.headers_offset, layout.ring_header_stride, layout.data_offset})
    check(offset % 8 == 0, "aligned to words");
  const Wide headers_end = Wide{layout.headers_offset} + Wide{layout.rings} * layout.ring_header_stride;
  const Wide data_end = Wide{layout.data_offset} + Wide{layout.rings} * layout.ring_words * 8;
  check(layout.headers_offset >= sizeof(FileHeader), "indices follow the header");
  check(headers_end <= layout.data_offset, "data follows the indices");
  check(data_end <= layout.file_size, "data lies in the file");
  if (layout.names_offset == 0) return;
  check(layout.names_offset >= data_end, "names follow the data");
  check(Wide{layout.names_offset} + user_event_names_bytes <= layout.file_size, "names lie in the file");
}

void read_parts(const RingMap& map) {
  const Layout& layout = map.layout();
  check_parts(layout);
  std::vector<RingIndices> indices(layout.rings);
  check(map.load_indices(indices), "indices can be read");
  const std::uint32_t last = layout.rings - 1;
  const std::uint64_t size = std::min<std::uint64_t>(layout.ring_words, 8);
  std::vector<std::uint64_t> copied(size), read(size);
  for (const std::uint64_t position : {std::uint64_t{0}, layout.ring_words - size}) {
    check(map.copy_words(last, position, copied) && map.read_words(last, position, read), "words can be read");
    check(copied == read, "both ways to read words are the same");
    check(map.words(last, position, size).size() == size, "words in the mapping");
  }
  std::string name;
  for (const std::uint16_t id : {std::uint16_t{0}, static_cast<std::uint16_t>(user_event_slots - 1)}) {
    if (map.copy_name(id, name)) check(name.size() < user_event_name_bytes, "length of a name");
  }
  static_cast<void>(map.read_mark());
  check(map.same_header(), "the header did not change");
}

}  // namespace

void ring_header(Bytes bytes) {
  Input input(bytes);
  const auto size = input.take<std::uint64_t>();
  const auto first = input.take<FileHeader>(), second = input.take<FileHeader>();
  // Most headers are of large files: they are checked by their numbers.
  if (const auto layout = check_layout(first, size)) check_parts(*layout);

  constexpr std::uint64_t max_bytes = 1 << 22;
  static const UniqueFd file = file_of({});
  const auto put = [&](const FileHeader& header, std::uint64_t file_bytes) {
    resize(file, file_bytes % max_bytes);
    check(::pwrite(file.get(), &header, sizeof header, 0) == sizeof header, "pwrite");
  };
  resize(file, 0);
  put(first, size);
  auto map = RingMap::open(UniqueFd(::dup(file.get())), "fuzz");
  if (!map) return;
  read_parts(*map);
  put(second, size / 2 + size % 64);
  if (map->refresh(RingMap::Recreated::is_mapped) != RingMap::Change::truncated) read_parts(*map);
}

}  // namespace rtev::fuzz
