// SPDX-License-Identifier: MIT
// The bytes of object tables: what the helper that parses a program's file gives to the tracer that unwinds with it.
// Both are the same build, so there is one version only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rtev::object_tables_format {

inline constexpr std::uint64_t magic = 0x3142545f56455452;  // "RTEV_TB1"
/// Larger tables are neither built nor accepted.
inline constexpr std::size_t max_bytes = 192u << 20;
inline constexpr std::size_t max_build_id = 63;
/// What every part begins at a multiple of.
inline constexpr std::size_t alignment = 8;

// Addresses are u32 and count from the object's link base. Where two parts are said to have the same count, entries of
// the same index belong together.
enum class Part : std::uint8_t {
  segments,       ///< Segment: executable ones
  row_begins,     ///< u32, sorted: where a rule begins to hold; it holds up to the next
  row_rules,      ///< u16, same count: index of a rule, and first_row
  rule_offsets,   ///< u32: where in `rules`; the first rule is none
  rules,          ///< bytes: RuleHead, then RuleHead::saves times SavedRegister
  expressions,    ///< bytes: u8 size, then a DWARF expression
  returns,        ///< u32, sorted: return addresses in OCaml code
  frame_data,     ///< u16, same count: size of the frame and two flags, or return_to_c
  return_places,  ///< u32, same count: index of the innermost place + 1; 0 if there is none
  places,         ///< Place
  place_names,    ///< PlaceName
  symbol_begins,  ///< u32, sorted
  symbols,        ///< Symbol, same count
  roots,          ///< CodeExtent: functions that nothing calls
  line_begins,    ///< u32, sorted: address of the first row of each block
  line_offsets,   ///< u32, same count: where in line_rows
  line_rows,      ///< bytes: see rows_of_block
  strings,        ///< u8 size, then that many bytes
};
inline constexpr std::size_t part_count = static_cast<std::size_t>(Part::strings) + 1;

struct PartExtent {
  std::uint32_t offset = 0, bytes = 0;
};

/// Code of a function; both 0 if it is not known.
struct CodeExtent {
  std::uint32_t begin = 0, end = 0;
};

struct Header {
  std::uint64_t magic = 0;
  std::uint64_t link_base = 0;
  std::uint32_t bytes = 0;  ///< of all, with this header
  std::uint16_t machine = 0;
  std::uint8_t is_cut = 0;  ///< parts were left out, since the file takes too long to read
  std::uint8_t build_id_bytes = 0;
  std::array<std::uint8_t, max_build_id + 1> build_id{};
  CodeExtent system{};  ///< of OCaml's runtime in assembly
  CodeExtent raise{};   ///< caml_raise_exn and caml_reraise_exn
  std::array<PartExtent, part_count> parts{};
};

struct Segment {
  std::uint64_t file_offset = 0, bytes = 0;
  std::uint32_t address = 0, unused = 0;
};

/// In row_rules: the first row of a function.
inline constexpr std::uint16_t first_row = 0x8000;
/// The rule of code of which it is not known how to unwind it.
inline constexpr std::uint16_t no_rule = 0;

enum class CfaKind : std::uint8_t { none, register_offset, expression };

enum RuleFlag : std::uint8_t {
  signal_frame = 1,     ///< augmentation 'S'
  is_root = 2,          ///< has no caller
  return_is_signed = 4  ///< the return address carries a signature (arm64)
};

struct RuleHead {
  CfaKind cfa = CfaKind::none;
  std::uint8_t cfa_register = 0;
  std::uint8_t flags = 0;
  std::uint8_t saves = 0;
  std::int32_t cfa_value = 0;  ///< added to the register, or where the expression is
  bool operator==(const RuleHead&) const = default;
};

enum class SaveKind : std::uint8_t {
  same,           ///< never stored
  at_offset,      ///< in memory at CFA + value
  offset,         ///< is CFA + value
  in_register,    ///< in the register of number value
  at_expression,  ///< in memory at the address that an expression computes
  by_expression,  ///< what an expression computes
  undefined,
};

struct SavedRegister {
  std::uint8_t number = 0;
  SaveKind kind = SaveKind::same;
  std::uint16_t unused = 0;
  std::int32_t value = 0;
  bool operator==(const SavedRegister&) const = default;
};

/// In frame_data: no OCaml frame but the end of a chunk of an OCaml stack.
inline constexpr std::uint16_t return_to_c = 0xffff;

struct Place {
  std::uint32_t name = 0;
  std::uint32_t line = 0;  ///< and more_places
};
/// In Place::line: the next place is where this one was inlined.
inline constexpr std::uint32_t more_places = 1u << 31;

/// Rows of Part::line_rows say of which line the code from an address on is. A block has this many, the last one fewer.
/// All are LEB128 numbers. The first row: file (where in `strings`), line (0 = of none). Each other one: distance from
/// the row before in bytes << 1, plus 1 if the file is another one; the file, if so; how much greater the line is,
/// signed.
inline constexpr std::size_t rows_of_block = 32;

struct PlaceName {
  std::uint32_t function = 0, file = 0;  ///< where in `strings`
};

struct Symbol {
  std::uint32_t bytes = 0, name = 0;
};

static_assert(std::is_trivially_copyable_v<Header> && sizeof(Header) % alignment == 0);
static_assert(sizeof(Segment) == 24 && sizeof(RuleHead) == 8 && sizeof(SavedRegister) == 8 && sizeof(Place) == 8);

}  // namespace rtev::object_tables_format
