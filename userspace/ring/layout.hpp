// SPDX-License-Identifier: MIT
// Layout of an OCaml runtime events file, and the check that a file has it.
//
// All numbers are native-endian 64-bit words. Order in the file: header, one ring header for each domain, ring data,
// and since OCaml 5.1 the names of user events. Source: runtime/caml/runtime_events.h and runtime/runtime_events.c.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rtev/error.hpp"
#include "rtev/event.hpp"

namespace rtev {

/// The smallest pages that there are.
inline constexpr std::uint64_t page_bytes = 4096;

/// The first 64 bytes of the file. A hostile program can write any values: see check_layout().
struct FileHeader {
  std::uint64_t version;
  std::uint64_t max_domains;
  std::uint64_t ring_header_size_bytes;
  std::uint64_t ring_size_bytes;
  std::uint64_t ring_size_elements;
  std::uint64_t headers_offset;
  std::uint64_t data_offset;
  std::uint64_t custom_events_offset;  ///< not written by OCaml 5.0
};
static_assert(sizeof(FileHeader) == 64);

/// Bits of a message's first word.
namespace message {
inline constexpr unsigned length_shift = 54;                  ///< 10 bits: words, this one and the timestamp included
inline constexpr std::uint64_t user_bit = 1ULL << 53;         ///< 1: user event, 0: runtime event
inline constexpr unsigned type_shift = 49;                    ///< 4 bits
inline constexpr unsigned id_shift = 36;                      ///< 13 bits
inline constexpr std::uint64_t zero_mask = (1ULL << 36) - 1;  ///< zero in all versions

// Types of runtime events, and of user events.
inline constexpr unsigned padding = 0, lifecycle = 1, begin = 2, end = 3, counter = 4, alloc = 5;
inline constexpr unsigned unit = 0, integer = 1, span_begin = 2, span_end = 3, custom = 4;

inline constexpr std::uint64_t max_words = 1023;
inline constexpr std::uint64_t max_id = (1 << 13) - 1;

/// A message's first word; `length` counts all its words.
constexpr std::uint64_t first_word(std::uint64_t length, bool user, unsigned type, std::uint64_t id) {
  return length << length_shift | (user ? user_bit : 0) | std::uint64_t{type} << type_shift | id << id_shift;
}
}  // namespace message

inline constexpr std::uint64_t user_event_slots = 1 << 13;   ///< names of user events, by id
inline constexpr std::uint64_t user_event_name_bytes = 128;  ///< per name, NUL included
inline constexpr std::uint64_t user_event_names_bytes = user_event_slots * user_event_name_bytes;
inline constexpr std::uint64_t ring_header_bytes = 80;  ///< head, tail (u64 each), 64 bytes of padding

/// RingWriter writes it after the names, where files of OCaml's runtime end and its readers do not read: the name of
/// the producer, and the table of its ids. A runtime that reuses the file truncates it there.
struct ProducerMark {
  static constexpr std::uint64_t magic_value = 0x2176'6574'7262'696c;  ///< "librtev!" on little-endian machines
  static constexpr std::uint32_t current_version = 1;

  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t family;  ///< enum Family
  char producer[48];     ///< name of the writing library, "librtev"; NUL-terminated
};
static_assert(sizeof(ProducerMark) == 64);

/// The parts of a file, from a checked header. Offsets and sizes in bytes, all inside the file.
struct Layout {
  std::uint32_t rings;       ///< number of rings, 1 to max_domains
  std::uint64_t ring_words;  ///< capacity of each ring, a power of two
  std::uint64_t headers_offset;
  std::uint64_t ring_header_stride;
  std::uint64_t data_offset;
  std::uint64_t names_offset;  ///< 0: the file has no names (OCaml 5.0)
  std::uint64_t file_size;

  bool operator==(const Layout&) const = default;

  /// How much of the file a reader maps.
  std::uint64_t mapped_bytes() const {
    return names_offset != 0 ? names_offset + user_event_names_bytes
                             : data_offset + rings * ring_words * sizeof(std::uint64_t);
  }
};

/// Readers map no more of a file: address space ends at 2^47 bytes. OCaml makes rings of 2^16 words for 128 domains, 64
/// MiB, by default.
inline constexpr std::uint64_t max_mapped_bytes = std::uint64_t{1} << 42;

/// Checks every field of a header against the size of the file in bytes. The error's `why` names the first field that
/// is wrong. The format has no "ready" flag: the header of a ring that is just being created fails here and passes
/// moments later.
Result<Layout> check_layout(const FileHeader& header, std::uint64_t file_size);

}  // namespace rtev
