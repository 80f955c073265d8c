// SPDX-License-Identifier: MIT
#include "ring/layout.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <utility>

namespace rtev {
namespace {

std::unexpected<Error> wrong(std::string why) {
  return std::unexpected(Error{.what = "not a runtime events ring", .why = std::move(why)});
}

/// offset + bytes <= limit, without overflow.
bool fits(std::uint64_t offset, std::uint64_t bytes, std::uint64_t limit) {
  return offset <= limit && bytes <= limit - offset;
}

bool word_aligned(std::uint64_t offset) {
  return offset % sizeof(std::uint64_t) == 0;
}

}  // namespace

Result<Layout> check_layout(const FileHeader& header, std::uint64_t file_size) {
  const auto invalid = [&](std::string_view field, std::uint64_t value) {
    return wrong("header field " + std::string(field) + " is " + std::to_string(value) + ", in a file of " +
                 std::to_string(file_size) + " bytes");
  };
  if (header.version != 1) return wrong("its header is not that of a runtime events file");
  if (header.max_domains == 0 || header.max_domains > rtev::max_domains)
    return invalid("max_domains", header.max_domains);
  // Two words for head and tail are read; the bound keeps the products below far from overflow.
  if (header.ring_header_size_bytes < 16 || header.ring_header_size_bytes > 4096 ||
      !word_aligned(header.ring_header_size_bytes))
    return invalid("ring_header_size_bytes", header.ring_header_size_bytes);
  if (!std::has_single_bit(header.ring_size_elements) || header.ring_size_elements > file_size / sizeof(std::uint64_t))
    return invalid("ring_size_elements", header.ring_size_elements);
  if (header.ring_size_bytes != header.ring_size_elements * sizeof(std::uint64_t))
    return invalid("ring_size_bytes", header.ring_size_bytes);

  const std::uint64_t headers_size = header.max_domains * header.ring_header_size_bytes;
  if (header.headers_offset < sizeof(FileHeader) || !word_aligned(header.headers_offset) ||
      !fits(header.headers_offset, headers_size, file_size))
    return invalid("headers_offset", header.headers_offset);
  if (header.ring_size_bytes > file_size / header.max_domains)
    return invalid("ring_size_bytes", header.ring_size_bytes);
  const std::uint64_t data_size = header.max_domains * header.ring_size_bytes;
  if (header.data_offset < header.headers_offset + headers_size || !word_aligned(header.data_offset) ||
      !fits(header.data_offset, data_size, file_size))
    return invalid("data_offset", header.data_offset);

  Layout layout{.rings = static_cast<std::uint32_t>(header.max_domains),
                .ring_words = header.ring_size_elements,
                .headers_offset = header.headers_offset,
                .ring_header_stride = header.ring_header_size_bytes,
                .data_offset = header.data_offset,
                .names_offset = 0,
                .file_size = file_size};
  // OCaml 5.0 ends the file with the data and never writes custom_events_offset, which may then hold anything.
  const std::uint64_t data_end = header.data_offset + data_size;
  if (data_end > max_mapped_bytes) return invalid("ring_size_bytes", header.ring_size_bytes);
  if (file_size == data_end) return layout;
  if (header.custom_events_offset < data_end || !word_aligned(header.custom_events_offset) ||
      !fits(header.custom_events_offset, user_event_names_bytes, std::min(file_size, max_mapped_bytes)))
    return invalid("custom_events_offset", header.custom_events_offset);
  layout.names_offset = header.custom_events_offset;
  return layout;
}

}  // namespace rtev
