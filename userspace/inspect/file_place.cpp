// SPDX-License-Identifier: MIT
#include "inspect/file_place.hpp"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "bpf/records.h"

namespace rtev {
namespace {

/// "7.events\0tmp\0" becomes "/tmp/7.events".
std::string join_names(std::string_view names) {
  std::string path;
  while (!names.empty()) {
    names.remove_suffix(1);  // the NUL
    const auto before = names.rfind('\0');
    const auto begin = before == std::string_view::npos ? 0 : before + 1;
    path.append("/").append(names.substr(begin));
    names = names.substr(0, begin);
  }
  return path;
}

std::optional<FilePlace> place_of(const rtev_file& file, std::string_view names) {
  if (names.empty() || names.back() != '\0') return std::nullopt;
  constexpr unsigned minor_bits = 20;
  return FilePlace{.device = makedev(file.device >> minor_bits, file.device & ((1u << minor_bits) - 1)),
                   .inode = file.inode,
                   .path = join_names(names)};
}

}  // namespace

RingRecordFiles parse_ring_record(std::span<const std::byte> tail) {
  constexpr std::size_t tail_begin = sizeof(rtev_lifecycle), fixed = offsetof(rtev_ring_record, paths) - tail_begin;
  if (tail.size() < fixed) return {};
  const auto copy = [&]<typename Field>(Field& field, std::size_t offset) {
    std::memcpy(&field, tail.data() + offset - tail_begin, sizeof field);
  };
  __s64 clock_offset = 0;
  rtev_file ring, program;
  copy(clock_offset, offsetof(rtev_ring_record, clock_offset));
  copy(ring, offsetof(rtev_ring_record, ring));
  copy(program, offsetof(rtev_ring_record, program));
  const std::string_view paths(reinterpret_cast<const char*>(tail.data()) + fixed, tail.size() - fixed);
  const auto ring_end = std::min<std::size_t>(ring.path_bytes, paths.size());
  return {.clock_offset_ns = clock_offset,
          .ring = place_of(ring, paths.substr(0, ring_end)),
          .program = place_of(program, paths.substr(ring_end, program.path_bytes))};
}

}  // namespace rtev
