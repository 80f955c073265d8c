// SPDX-License-Identifier: MIT
#include "ring/layout.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "base/run_parameters.hpp"

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

/// Whether OCaml's runtime made the file for rings that it cannot make (OCAMLRUNPARAM: e, d): it computed the length in
/// an int, which holds only the lowest bits of it. `names_bytes`: OCaml 5.0 has no names.
bool is_too_short(const FileHeader& header, std::uint64_t file_size, std::uint64_t names_bytes) {
  // 2^31 is a negative int, whose sign the header's field has, too.
  const std::uint64_t words = header.ring_size_elements & UINT32_MAX;
  if (!std::has_single_bit(words) || header.max_domains == 0 || header.max_domains > rtev::max_domains ||
      header.data_offset != header.headers_offset + header.max_domains * header.ring_header_size_bytes)
    return false;
  const std::uint64_t whole = header.data_offset + header.max_domains * words * sizeof(std::uint64_t) + names_bytes;
  return whole > UINT32_MAX && file_size == (whole & UINT32_MAX);
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
  if (is_too_short(header, file_size, user_event_names_bytes) || is_too_short(header, file_size, 0))
    return std::unexpected(Error{.what = "not a runtime events ring",
                                 .why =
                                     "its rings are larger than OCaml's runtime can make (OCAMLRUNPARAM: e, d), so the "
                                     "file is too short for them, and the program writes beyond its end",
                                 .hint = "start the program with smaller rings, e.g. OCAMLRUNPARAM=e=16",
                                 .code = EFBIG});
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
