// SPDX-License-Identifier: MIT
#include "unwind/object_tables.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <atomic>
#include <cerrno>

#include "unwind/byte_cursor.hpp"

namespace rtev {
namespace {

using namespace object_tables_format;

constexpr const char* failure = "cannot use tables of program";
/// Rows that a function has before one of its addresses, in a search for where it begins.
constexpr std::size_t max_rows_of_function = 4096;
/// A row has at most three LEB128 numbers of ten bytes.
constexpr std::size_t max_bytes_of_block = rows_of_block * 30;

std::unexpected<Error> refusal(std::string why) {
  return std::unexpected(Error{failure, {}, std::move(why)});
}

/// The entries of a part; none unless all of it lies in the bytes.
template <typename Entry>
std::span<const Entry> part_of(std::span<const std::byte> bytes, const Header& header, Part part) {
  const PartExtent extent = header.parts[static_cast<std::size_t>(part)];
  if (extent.offset % alignment != 0 || extent.offset > bytes.size() || extent.bytes > bytes.size() - extent.offset)
    return {};
  return {reinterpret_cast<const Entry*>(bytes.data() + extent.offset), extent.bytes / sizeof(Entry)};
}

/// The last entry that is not greater; SIZE_MAX if there is none. Of entries that are not sorted it is any.
std::size_t last_not_above(std::span<const std::uint32_t> sorted, std::uint32_t value) {
  std::size_t begin = 0, size = sorted.size();
  if (size == 0 || sorted[0] > value) return SIZE_MAX;
  while (size > 1) {
    const std::size_t half = size / 2;
    begin = sorted[begin + half] <= value ? begin + half : begin;
    size -= half;
  }
  return begin;
}

}  // namespace

Result<ObjectTables> ObjectTables::from_bytes(std::vector<std::byte> bytes) {
  if (bytes.size() > ObjectTables::max_bytes) return refusal("too large");
  const std::span<const std::byte> view = bytes;  // a vector that is moved keeps its memory
  return over(view, std::move(bytes));
}

Result<ObjectTables> ObjectTables::from_fd(UniqueFd fd) {
  // Only files in ordinary memory: reading one in huge pages can fault.
  struct statfs place{};
  struct stat status{};
  if (::fstatfs(fd.get(), &place) != 0 || ::fstat(fd.get(), &status) != 0) return errno_error(errno, failure);
  constexpr int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (place.f_type != TMPFS_MAGIC || seals < 0 || (seals & wanted) != wanted) return refusal("not sealed");
  if (status.st_size < static_cast<off_t>(sizeof(Header)) || status.st_size > static_cast<off_t>(max_bytes))
    return refusal("not of a size that tables have");
  // Pages that do not exist yet would be ours to pay for.
  if (status.st_blocks < status.st_size / 512) return refusal("sparse");
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (begin == MAP_FAILED) return errno_error(errno, failure);
  MemoryMap map(static_cast<std::byte*>(begin), Unmap{size});
  const std::span<const std::byte> view{map.get(), size};
  return over(view, std::move(map));
}

Result<ObjectTables> ObjectTables::over(std::span<const std::byte> bytes, Memory memory) {
  if (bytes.size() < sizeof(Header)) return refusal("not of a size that tables have");
  ObjectTables tables(std::move(memory));
  std::memcpy(&tables.header_, bytes.data(), sizeof(Header));
  Header& header = tables.header_;
  if (header.magic != magic || header.bytes != bytes.size()) return refusal("not tables");
  if (header.build_id_bytes > max_build_id) return refusal("not tables");

  static std::atomic<std::uint32_t> next_id{1};
  tables.id_ = next_id.fetch_add(1, std::memory_order_relaxed);
  tables.segments_ = part_of<Segment>(bytes, header, Part::segments);
  tables.row_begins_ = part_of<std::uint32_t>(bytes, header, Part::row_begins);
  tables.row_rules_ = part_of<std::uint16_t>(bytes, header, Part::row_rules);
  tables.rule_offsets_ = part_of<std::uint32_t>(bytes, header, Part::rule_offsets);
  tables.rules_ = part_of<std::byte>(bytes, header, Part::rules);
  tables.expressions_ = part_of<std::byte>(bytes, header, Part::expressions);
  tables.returns_ = part_of<std::uint32_t>(bytes, header, Part::returns);
  tables.frame_data_ = part_of<std::uint16_t>(bytes, header, Part::frame_data);
  tables.return_places_ = part_of<std::uint32_t>(bytes, header, Part::return_places);
  tables.places_ = part_of<Place>(bytes, header, Part::places);
  tables.place_names_ = part_of<PlaceName>(bytes, header, Part::place_names);
  tables.symbol_begins_ = part_of<std::uint32_t>(bytes, header, Part::symbol_begins);
  tables.symbols_ = part_of<object_tables_format::Symbol>(bytes, header, Part::symbols);
  tables.roots_ = part_of<CodeExtent>(bytes, header, Part::roots);
  tables.line_begins_ = part_of<std::uint32_t>(bytes, header, Part::line_begins);
  tables.line_offsets_ = part_of<std::uint32_t>(bytes, header, Part::line_offsets);
  tables.line_rows_ = part_of<std::byte>(bytes, header, Part::line_rows);
  tables.strings_ = part_of<std::byte>(bytes, header, Part::strings);
  // Few of each: the builder lists no more.
  tables.segments_ = tables.segments_.first(std::min<std::size_t>(tables.segments_.size(), 64));
  tables.roots_ = tables.roots_.first(std::min<std::size_t>(tables.roots_.size(), 16));
  // What belongs together has one length.
  const std::size_t rows = std::min(tables.row_begins_.size(), tables.row_rules_.size());
  tables.row_begins_ = tables.row_begins_.first(rows);
  tables.row_rules_ = tables.row_rules_.first(rows);
  const std::size_t symbols = std::min(tables.symbol_begins_.size(), tables.symbols_.size());
  tables.symbol_begins_ = tables.symbol_begins_.first(symbols);
  tables.symbols_ = tables.symbols_.first(symbols);
  return tables;
}

std::optional<std::uint32_t> ObjectTables::address_of(std::uint64_t file_offset) const {
  for (const Segment& segment : segments_) {
    // The part of a page before and behind a segment is mapped, too.
    const std::uint64_t within = file_offset - segment.file_offset;
    if (file_offset < segment.file_offset || within >= segment.bytes) continue;
    const std::uint64_t address = segment.address + within;
    if (address < UINT32_MAX) return static_cast<std::uint32_t>(address);
  }
  return std::nullopt;
}

std::size_t ObjectTables::row_at(std::uint32_t address) const {
  return last_not_above(row_begins_, address);
}

CfiRule ObjectTables::rule(std::uint16_t number) const {
  if (number == no_rule || number >= rule_offsets_.size()) return {};
  const std::uint32_t offset = rule_offsets_[number];
  if (offset % sizeof(RuleHead) != 0 || offset > rules_.size() || rules_.size() - offset < sizeof(RuleHead)) return {};
  CfiRule rule;
  std::memcpy(&rule.head, rules_.data() + offset, sizeof rule.head);
  const std::size_t room = (rules_.size() - offset - sizeof(RuleHead)) / sizeof(SavedRegister);
  if (rule.head.saves > room) return {};
  rule.saved = {reinterpret_cast<const SavedRegister*>(rules_.data() + offset + sizeof(RuleHead)), rule.head.saves};
  return rule;
}

std::span<const std::byte> ObjectTables::expression(std::int32_t place) const {
  const auto offset = static_cast<std::size_t>(static_cast<std::uint32_t>(place));
  if (place < 0 || offset >= expressions_.size()) return {};
  const auto size = std::to_integer<std::size_t>(expressions_[offset]);
  return size < expressions_.size() - offset ? expressions_.subspan(offset + 1, size) : std::span<const std::byte>{};
}

CodeExtent ObjectTables::function_at(std::uint32_t address) const {
  const std::size_t row = row_at(address);
  if (row == none) return {};
  std::size_t begin = row, end = row + 1;
  for (std::size_t steps = 0; (row_rules_[begin] & first_row) == 0; --begin)
    // A row without a rule and without the mark is a gap between functions.
    if (begin == 0 || ++steps > max_rows_of_function || row_rules_[begin] == no_rule) return {};
  for (std::size_t steps = 0; end < row_rules_.size(); ++end)
    if ((row_rules_[end] & first_row) != 0 || row_rules_[end] == no_rule || ++steps > max_rows_of_function) break;
  if (end == row_begins_.size()) return {};
  return {row_begins_[begin], row_begins_[end]};
}

bool ObjectTables::is_root(std::uint32_t address) const {
  return std::ranges::any_of(roots_, [&](CodeExtent root) { return address >= root.begin && address < root.end; });
}

std::optional<ObjectTables::Call> ObjectTables::call_at(std::uint32_t return_address) const {
  const std::size_t index = last_not_above(returns_, return_address);
  if (index == none || returns_[index] != return_address) return std::nullopt;
  return call(index);
}

std::optional<ObjectTables::Call> ObjectTables::call_from(std::uint32_t address) const {
  const auto found = std::ranges::lower_bound(returns_, address);
  if (found == returns_.end()) return std::nullopt;
  return call(static_cast<std::size_t>(found - returns_.begin()));
}

std::optional<ObjectTables::Line> ObjectTables::line_at(std::uint32_t address) const {
  const std::size_t block = last_not_above(line_begins_, address);
  if (block >= line_offsets_.size() || line_offsets_[block] >= line_rows_.size()) return std::nullopt;
  const auto rows = line_rows_.subspan(line_offsets_[block]);
  ByteCursor cursor(rows.first(std::min(rows.size(), max_bytes_of_block)));
  std::uint64_t begin = line_begins_[block], file = cursor.take_uleb(), line = cursor.take_uleb();
  for (std::size_t row = 1; row < rows_of_block && !cursor.at_end(); ++row) {
    const std::uint64_t step = cursor.take_uleb();
    if (begin + (step >> 1) > address) break;
    begin += step >> 1;
    if ((step & 1) != 0) file = cursor.take_uleb();
    line += static_cast<std::uint64_t>(cursor.take_sleb());
  }
  if (!cursor.ok() || line == 0 || line >= more_places) return std::nullopt;
  return Line{.begin = static_cast<std::uint32_t>(begin),
              .number = static_cast<std::uint32_t>(line),
              .file = file <= UINT32_MAX ? text(static_cast<std::uint32_t>(file)) : ""};
}

std::optional<ObjectTables::Symbol> ObjectTables::symbol_at(std::uint32_t address) const {
  const std::size_t index = last_not_above(symbol_begins_, address);
  if (index == none) return std::nullopt;
  const auto& symbol = symbols_[index];
  // Code in assembly often has no size: it reaches to the next symbol.
  if (symbol.bytes != 0 && address - symbol_begins_[index] >= symbol.bytes) return std::nullopt;
  return Symbol{.name = text(symbol.name), .begin = symbol_begins_[index]};
}

std::string_view ObjectTables::text(std::uint32_t place) const {
  if (place >= strings_.size()) return {};
  const auto size = std::to_integer<std::size_t>(strings_[place]);
  if (size >= strings_.size() - place) return {};
  return {reinterpret_cast<const char*>(strings_.data() + place + 1), size};
}

}  // namespace rtev
