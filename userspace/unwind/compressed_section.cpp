// SPDX-License-Identifier: MIT
#include "unwind/compressed_section.hpp"

#include <elf.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "unwind/byte_cursor.hpp"

namespace rtev {

std::vector<std::byte> decompress_section(std::span<const std::byte> section, std::uint64_t limit, WorkBudget& budget) {
  constexpr std::uint64_t step = 256u << 10;
  ByteCursor cursor(section);
  const auto header = cursor.take<Elf64_Chdr>();
  const auto rest = section.subspan(std::min(section.size(), sizeof header));
  if (!cursor.ok() || header.ch_type != ELFCOMPRESS_ZLIB || rest.size() > std::numeric_limits<uInt>::max()) return {};
  limit = std::min<std::uint64_t>(limit, header.ch_size);

  z_stream stream{};
  // zlib does not write to its input.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest.data()));
  stream.avail_in = static_cast<uInt>(rest.size());
  if (::inflateInit(&stream) != Z_OK) return {};
  std::vector<std::byte> bytes;
  int status = Z_OK;
  while (status == Z_OK && bytes.size() < limit && budget.has_left_now()) {
    const std::size_t before = bytes.size();
    bytes.resize(std::min(limit, before + step));
    stream.next_out = reinterpret_cast<Bytef*>(bytes.data() + before);
    stream.avail_out = static_cast<uInt>(bytes.size() - before);
    status = ::inflate(&stream, Z_SYNC_FLUSH);
    bytes.resize(bytes.size() - stream.avail_out);
  }
  ::inflateEnd(&stream);
  return bytes;
}

}  // namespace rtev
