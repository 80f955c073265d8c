// SPDX-License-Identifier: MIT
// The format: DWARF 5, section 6.2, and section 6.2 of DWARF 2 to 4.
#include "unwind/line_reader.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "unwind/byte_cursor.hpp"
#include "unwind/object_tables_format.hpp"

namespace rtev {
namespace {

using namespace object_tables_format;

constexpr std::size_t max_line_rows = std::size_t{1} << 22;
constexpr std::size_t max_files = 1u << 16, max_directories = 1u << 12, max_path_bytes = 4096;

/// From this address on the code is of this line.
struct Row {
  std::uint32_t address = 0;
  std::uint32_t line = 0;  ///< 0: of none
  std::uint32_t file = 0;  ///< where in the strings
  bool same_place(const Row& other) const { return line == other.line && file == other.file; }
};

// DW_LNS_*, DW_LNE_*, DW_LNCT_* and DW_FORM_*.
enum Opcode : std::uint8_t {
  extended = 0,
  copy = 1,
  advance_pc = 2,
  advance_line = 3,
  set_file = 4,
  const_add_pc = 8,
  fixed_advance_pc = 9,
};
enum ExtendedOpcode : std::uint8_t { end_sequence = 1, set_address = 2 };
enum Content : std::uint8_t { content_path = 1, content_directory = 2 };
enum Form : std::uint8_t {
  form_data2 = 0x05,
  form_data4 = 0x06,
  form_data8 = 0x07,
  form_string = 0x08,
  form_block = 0x09,
  form_data1 = 0x0b,
  form_strp = 0x0e,
  form_udata = 0x0f,
  form_data16 = 0x1e,
  form_line_strp = 0x1f,
};

struct File {
  std::string_view name;
  std::uint64_t directory = 0;
  std::optional<std::uint32_t> place{};  ///< in the strings, once a row needs it
};

/// The lines of one compilation unit.
class Unit {
 public:
  Unit(const LineSource& source, StringPool& strings, std::vector<Row>& rows, WorkBudget& budget)
      : source_(source), strings_(strings), rows_(rows), budget_(budget) {}

  void read(ByteCursor cursor, bool is_wide) {
    if (!read_header(cursor, is_wide)) return;
    while (!cursor.at_end() && rows_.size() < max_line_rows && budget_.has_left()) step(cursor);
    // A sequence without an end.
    rows_.resize(kept_);
  }

 private:
  bool read_header(ByteCursor& cursor, bool is_wide) {
    version_ = cursor.take<std::uint16_t>();
    if (version_ < 2 || version_ > 5) return false;
    if (version_ == 5) {
      const auto address_bytes = cursor.take<std::uint8_t>(), selector_bytes = cursor.take<std::uint8_t>();
      if (address_bytes != 8 || selector_bytes != 0) return false;
    }
    const std::uint64_t header_bytes = is_wide ? cursor.take<std::uint64_t>() : cursor.take<std::uint32_t>();
    ByteCursor header(cursor.take_bytes(header_bytes));
    min_instruction_ = header.take<std::uint8_t>();
    if (version_ >= 4) header.take<std::uint8_t>();  // operations in an instruction: 1 on our machines
    header.take<std::uint8_t>();                     // whether a row begins a statement by default
    line_base_ = header.take<std::int8_t>();
    line_range_ = header.take<std::uint8_t>();
    first_special_ = header.take<std::uint8_t>();
    if (line_range_ == 0 || first_special_ == 0) return false;
    for (unsigned opcode = 1; opcode < first_special_; ++opcode) arguments_[opcode] = header.take<std::uint8_t>();
    if (version_ == 5)
      read_names(header, is_wide);
    else
      read_old_names(header);
    rewind();
    return cursor.ok();
  }

  void read_old_names(ByteCursor& header) {
    directories_.emplace_back();
    files_.emplace_back();
    for (auto name = header.take_text(); !name.empty(); name = header.take_text()) {
      if (directories_.size() < max_directories) directories_.push_back(name);
    }
    for (auto name = header.take_text(); !name.empty(); name = header.take_text()) {
      const std::uint64_t directory = header.take_uleb();
      if (files_.size() < max_files) files_.push_back({.name = name, .directory = directory});
      header.take_uleb();  // time
      header.take_uleb();  // bytes
    }
  }

  void read_names(ByteCursor& header, bool is_wide) {
    read_entries(header, is_wide, max_directories, [&](const File& entry) { directories_.push_back(entry.name); });
    // The directory in which the compiler ran: of no use to who reads a name elsewhere.
    if (!directories_.empty()) directories_[0] = {};
    read_entries(header, is_wide, max_files, [&](const File& entry) { files_.push_back(entry); });
  }

  template <typename Visit>
  void read_entries(ByteCursor& header, bool is_wide, std::size_t max, const Visit& visit) {
    std::array<std::pair<std::uint64_t, std::uint64_t>, 255> formats;
    const auto format_count = header.take<std::uint8_t>();
    for (unsigned i = 0; i < format_count; ++i) {
      const std::uint64_t content = header.take_uleb();
      formats[i] = {content, header.take_uleb()};
    }
    const std::uint64_t count = header.take_uleb();
    // Entries without content take no bytes.
    if (format_count == 0) return;
    for (std::uint64_t i = 0; i < count && header.ok() && budget_.has_left(); ++i) {
      File entry;
      for (unsigned field = 0; field < format_count; ++field) {
        const auto [text, number] = take_form(header, formats[field].second, is_wide);
        if (formats[field].first == content_path) entry.name = text;
        if (formats[field].first == content_directory) entry.directory = number;
      }
      if (header.ok() && i < max) visit(entry);
    }
  }

  std::pair<std::string_view, std::uint64_t> take_form(ByteCursor& header, std::uint64_t form, bool is_wide) {
    switch (form) {
      case form_string:
        return {header.take_text(), 0};
      case form_line_strp: {
        const std::uint64_t offset = is_wide ? header.take<std::uint64_t>() : header.take<std::uint32_t>();
        if (offset >= source_.names.size()) return {};
        const auto rest = source_.names.subspan(offset);
        return {ByteCursor(rest.first(std::min(rest.size(), max_path_bytes))).take_text(), 0};
      }
      case form_strp:
        header.take_bytes(is_wide ? 8 : 4);
        return {};
      case form_udata:
        return {{}, header.take_uleb()};
      case form_data1:
        return {{}, header.take<std::uint8_t>()};
      case form_data2:
        return {{}, header.take<std::uint16_t>()};
      case form_data4:
        return {{}, header.take<std::uint32_t>()};
      case form_data8:
        return {{}, header.take<std::uint64_t>()};
      case form_data16:
        header.take_bytes(16);
        return {};
      case form_block:
        header.take_bytes(header.take_uleb());
        return {};
      default:
        // Its size is not known, nor is where the next field begins.
        header.take_bytes(UINT64_MAX);
        return {};
    }
  }

  void step(ByteCursor& cursor) {
    const auto opcode = cursor.take<std::uint8_t>();
    if (opcode >= first_special_) {
      const unsigned advance = opcode - first_special_;
      address_ += std::uint64_t{advance / line_range_} * min_instruction_;
      line_ += static_cast<std::uint64_t>(line_base_ + static_cast<int>(advance % line_range_));
      return add_row();
    }
    switch (opcode) {
      case extended: {
        ByteCursor arguments(cursor.take_bytes(cursor.take_uleb()));
        const auto kind = arguments.take<std::uint8_t>();
        if (kind == end_sequence) return end();
        if (kind == set_address) address_ = arguments.take<std::uint64_t>();
        return;
      }
      case copy:
        return add_row();
      case advance_pc:
        address_ += cursor.take_uleb() * min_instruction_;
        return;
      case advance_line:
        line_ += static_cast<std::uint64_t>(cursor.take_sleb());
        return;
      case set_file:
        file_ = cursor.take_uleb();
        return;
      case const_add_pc:
        address_ += std::uint64_t{(255u - first_special_) / line_range_} * min_instruction_;
        return;
      case fixed_advance_pc:
        address_ += cursor.take<std::uint16_t>();
        return;
      default:
        for (unsigned i = 0; i < arguments_[opcode]; ++i) cursor.take_uleb();
    }
  }

  void rewind() {
    address_ = 0;
    line_ = file_ = 1;
    is_in_no_code_ = false;
  }

  /// Rows of a sequence: in ascending order, in the code.
  void add_row() {
    if (is_in_no_code_) return;
    if (range_ == nullptr || !range_->contains(address_)) {
      const auto found =
          std::ranges::find_if(source_.code, [&](const AddressRange& range) { return range.contains(address_); });
      // Linkers leave the lines of functions that they drop, as if these were at address 0: large ones seem to reach
      // into the code of others.
      is_in_no_code_ |= found == source_.code.end() && rows_.size() == kept_;
      if (found == source_.code.end()) return;
      range_ = &*found;
    }
    const std::uint64_t offset = address_ - source_.link_base;
    if (address_ < source_.link_base || offset >= UINT32_MAX) return;
    Row row{.address = static_cast<std::uint32_t>(offset)};
    if (line_ <= max_line) {
      row.line = static_cast<std::uint32_t>(line_);
      row.file = place_of(file_);
    }
    if (rows_.size() == kept_) return rows_.push_back(row);
    Row& last = rows_.back();
    // Of several rows of an address the last one holds.
    if (row.address == last.address)
      last = row;
    else if (row.address > last.address && !row.same_place(last))
      rows_.push_back(row);
  }

  void end() {
    const std::uint64_t offset = address_ - source_.link_base;
    if (rows_.size() > kept_ && address_ >= source_.link_base && offset < UINT32_MAX && offset > rows_.back().address) {
      rows_.push_back({.address = static_cast<std::uint32_t>(offset)});
      kept_ = rows_.size();
    }
    rows_.resize(kept_);
    rewind();
  }

  std::uint32_t place_of(std::uint64_t number) {
    if (number >= files_.size()) return 0;
    File& file = files_[static_cast<std::size_t>(number)];
    if (!file.place) {
      const std::string_view directory =
          file.directory < directories_.size()
              ? directories_[static_cast<std::size_t>(file.directory)].substr(0, max_path_bytes)
              : "";
      file.place = directory.empty() || file.name.starts_with('/')
                       ? strings_.add(file.name)
                       : strings_.add(std::string(directory) + '/' + std::string(file.name));
    }
    return *file.place;
  }

  static constexpr std::uint64_t max_line = (1u << 30) - 1;

  const LineSource& source_;
  StringPool& strings_;
  std::vector<Row>& rows_;
  WorkBudget& budget_;
  std::size_t kept_ = rows_.size();  ///< rows of sequences that have ended
  const AddressRange* range_ = nullptr;
  bool is_in_no_code_ = false;  ///< the sequence
  std::vector<std::string_view> directories_;
  std::vector<File> files_;
  std::array<std::uint8_t, 256> arguments_{};
  std::uint16_t version_ = 0;
  std::uint8_t min_instruction_ = 1, line_range_ = 1, first_special_ = 1;
  std::int8_t line_base_ = 0;
  std::uint64_t address_ = 0, line_ = 1, file_ = 1;
};

void put_uleb(std::vector<std::byte>& bytes, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes.push_back(static_cast<std::byte>(number | 0x80));
  bytes.push_back(static_cast<std::byte>(number));
}

void put_sleb(std::vector<std::byte>& bytes, std::int64_t number) {
  for (; number < -64 || number >= 64; number >>= 7) bytes.push_back(static_cast<std::byte>(number | 0x80));
  bytes.push_back(static_cast<std::byte>(number & 0x7f));
}

/// Rows in ascending order, of each address one.
LineTables pack(std::span<const Row> rows) {
  LineTables tables;
  for (std::size_t i = 0, in_block = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    if (in_block == 0) {
      tables.begins.push_back(row.address);
      tables.offsets.push_back(static_cast<std::uint32_t>(tables.rows.size()));
      put_uleb(tables.rows, row.file);
      put_uleb(tables.rows, row.line);
    } else {
      const Row& last = rows[i - 1];
      const bool has_file = row.file != last.file;
      put_uleb(tables.rows, std::uint64_t{row.address - last.address} << 1 | (has_file ? 1 : 0));
      if (has_file) put_uleb(tables.rows, row.file);
      put_sleb(tables.rows, std::int64_t{row.line} - std::int64_t{last.line});
    }
    in_block = (in_block + 1) % rows_of_block;
  }
  return tables;
}

}  // namespace

LineTables read_lines(const LineSource& source, StringPool& strings, WorkBudget& budget) {
  std::vector<Row> rows;
  ByteCursor cursor(source.lines);
  while (!cursor.at_end() && rows.size() < max_line_rows && budget.has_left()) {
    constexpr std::uint32_t wide = 0xffffffff;
    std::uint64_t bytes = cursor.take<std::uint32_t>();
    const bool is_wide = bytes == wide;
    if (is_wide) bytes = cursor.take<std::uint64_t>();
    const auto unit = cursor.take_bytes(bytes);
    if (!cursor.ok()) break;
    Unit(source, strings, rows, budget).read(ByteCursor(unit), is_wide);
  }
  if (!budget.has_left_now()) return {};
  // Where one sequence ends another one may begin: that is what holds.
  const auto order = [](const Row& row) { return std::tuple(row.address, row.line != 0); };
  if (!std::ranges::is_sorted(rows, {}, order)) std::ranges::stable_sort(rows, {}, order);
  std::size_t kept = 0;
  for (const Row& row : rows) {
    if (kept != 0 && rows[kept - 1].address == row.address)
      rows[kept - 1] = row;
    else if (kept == 0 || !row.same_place(rows[kept - 1]))
      rows[kept++] = row;
  }
  rows.resize(kept);
  return pack(rows);
}

}  // namespace rtev
