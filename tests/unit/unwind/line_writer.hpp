// SPDX-License-Identifier: MIT
// Writes .debug_line sections.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unit/unwind/object_writer.hpp"

namespace rtev::test {

/// The instructions of a sequence of lines.
class LineProgram {
 public:
  static constexpr int line_base = -3;
  static constexpr unsigned line_range = 12, first_special = 13;

  LineProgram& at(std::uint64_t address) {
    out_.u8(0).u8(9).u8(2).u64(address);
    return *this;
  }
  /// A row this many bytes and lines further on.
  LineProgram& row(unsigned bytes, int lines) {
    const unsigned special = first_special + static_cast<unsigned>(lines - line_base) + bytes * line_range;
    if (lines >= line_base && lines < line_base + static_cast<int>(line_range) && special < 256) {
      out_.u8(special);
    } else {
      out_.u8(2), uleb(bytes);
      out_.u8(3), sleb(lines);
      out_.u8(1);
    }
    return *this;
  }
  LineProgram& file(unsigned number) {
    out_.u8(4), uleb(number);
    return *this;
  }
  LineProgram& end(unsigned bytes) {
    out_.u8(2), uleb(bytes);
    out_.u8(0).u8(1).u8(1);
    return *this;
  }
  /// Any other instruction.
  LineProgram& raw(const std::string& bytes) {
    out_.bytes += bytes;
    return *this;
  }
  const std::string& bytes() const { return out_.bytes; }

 private:
  void uleb(unsigned number) {
    for (; number >= 0x80; number >>= 7) out_.u8(number | 0x80);
    out_.u8(number);
  }
  void sleb(int number) {
    for (; number < -64 || number >= 64; number >>= 7) out_.u8(static_cast<unsigned>(number & 0x7f) | 0x80);
    out_.u8(static_cast<unsigned>(number & 0x7f));
  }

  ByteWriter out_;
};

/// Names of files with the numbers of their directories.
using LineFiles = std::vector<std::pair<std::string, unsigned>>;

namespace detail {

inline ByteWriter line_header() {
  ByteWriter header;
  header.u8(1).u8(1).u8(1).u8(static_cast<std::uint8_t>(LineProgram::line_base)).u8(LineProgram::line_range);
  header.u8(LineProgram::first_special);
  for (const unsigned arguments : {0u, 1u, 1u, 1u, 1u, 0u, 0u, 0u, 1u, 0u, 0u, 1u}) header.u8(arguments);
  return header;
}

inline std::string line_unit(unsigned version, const ByteWriter& header, const LineProgram& program) {
  ByteWriter unit;
  unit.u16(version);
  if (version == 5) unit.u8(8).u8(0);
  unit.u32(header.size());
  unit.bytes += header.bytes + program.bytes();
  ByteWriter whole;
  whole.u32(unit.size());
  whole.bytes += unit.bytes;
  return whole.bytes;
}

}  // namespace detail

/// Of DWARF 4: directories and files count from 1.
inline std::string lines_4(const std::vector<std::string>& directories, const LineFiles& files,
                           const LineProgram& program) {
  ByteWriter header = detail::line_header();
  for (const auto& name : directories) header.text(name);
  header.u8(0);
  for (const auto& [name, directory] : files) header.text(name).u8(directory).u8(0).u8(0);
  header.u8(0);
  return detail::line_unit(4, header, program);
}

/// Of DWARF 5: they count from 0. Adds the names to .debug_line_str.
inline std::string lines_5(const std::vector<std::string>& directories, const LineFiles& files,
                           const LineProgram& program, std::string& names) {
  constexpr unsigned path = 1, directory_index = 2, line_strp = 0x1f, data1 = 0x0b;
  ByteWriter header = detail::line_header();
  const auto put_name = [&](const std::string& name) {
    header.u32(names.size());
    names += name + '\0';
  };
  header.u8(1).u8(path).u8(line_strp).u8(static_cast<unsigned>(directories.size()));
  for (const auto& name : directories) put_name(name);
  header.u8(2).u8(path).u8(line_strp).u8(directory_index).u8(data1).u8(static_cast<unsigned>(files.size()));
  for (const auto& [name, directory] : files) {
    put_name(name);
    header.u8(directory);
  }
  return detail::line_unit(5, header, program);
}

}  // namespace rtev::test
