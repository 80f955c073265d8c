// SPDX-License-Identifier: MIT
// The part of pprof's format that is written: field numbers of its messages.
// Source: proto/profile.proto of github.com/google/pprof.
#pragma once

#include <cstdint>

namespace rtev::pprof {

using Tag = std::uint32_t;

enum class Profile : Tag {
  sample_type = 1,
  sample = 2,
  mapping = 3,
  location = 4,
  function = 5,
  string_table = 6,
  time_nanos = 9,
  duration_nanos = 10,
  period_type = 11,
  period = 12,
  comment = 13,
  default_sample_type = 14,
};
enum class ValueType : Tag { type = 1, unit = 2 };
enum class Sample : Tag { location_id = 1, value = 2, label = 3 };
enum class Label : Tag { key = 1, str = 2, num = 3 };
enum class Mapping : Tag {
  id = 1,
  filename = 5,
  build_id = 6,
  has_functions = 7,
  has_filenames = 8,
  has_line_numbers = 9,
};
enum class Location : Tag { id = 1, mapping_id = 2, address = 3, line = 4 };
enum class Line : Tag { function_id = 1, line = 2 };
enum class Function : Tag { id = 1, name = 2, system_name = 3, filename = 4 };

}  // namespace rtev::pprof
