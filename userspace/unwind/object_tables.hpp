// SPDX-License-Identifier: MIT
// What the tracer knows of a program's file: how to unwind its code, and which places in the source its calls are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"
#include "unwind/object_tables_format.hpp"

namespace rtev {

/// How to find the caller's registers.
struct CfiRule {
  object_tables_format::RuleHead head{};
  std::span<const object_tables_format::SavedRegister> saved{};
  explicit operator bool() const { return head.cfa != object_tables_format::CfaKind::none; }
};

/// A place in the source.
struct SourcePlace {
  std::string_view function;  ///< as the compiler names it, e.g. "Stdlib__List.map"; can be empty
  std::string_view file;      ///< can be empty
  std::uint32_t line = 0;     ///< 0 = not known
};

/// Tables of one file that the helper process built (object_tables_builder.hpp). The helper parsed a hostile file and
/// is not believed: each look-up checks what it reads, so that wrong tables give wrong answers and nothing worse.
///
/// Addresses count from the object's link base. Thread-safe.
class ObjectTables {
 public:
  static constexpr std::size_t max_bytes = object_tables_format::max_bytes;
  /// Inlined functions of one place that are listed at the most.
  static constexpr std::size_t max_inlined = 64;

  static Result<ObjectTables> from_bytes(std::vector<std::byte> bytes);
  /// Maps a file in memory (memfd_create(2)), which must be sealed so that it can neither be changed nor cut.
  static Result<ObjectTables> from_fd(UniqueFd fd);

  ObjectTables(ObjectTables&&) noexcept = default;
  ObjectTables& operator=(ObjectTables&&) noexcept = default;

  /// Differs from that of all other tables in this process.
  std::uint32_t id() const { return id_; }
  std::uint16_t machine() const { return header_.machine; }
  /// Link-time address from which the others count.
  std::uint64_t link_base() const { return header_.link_base; }
  std::span<const std::uint8_t> build_id() const { return std::span{header_.build_id}.first(header_.build_id_bytes); }
  /// Parts are missing, since the file takes too long to read.
  bool is_cut() const { return header_.is_cut != 0; }
  /// Bytes of memory that the tables take.
  std::size_t bytes() const { return header_.bytes; }

  /// The address of an offset in the file; nothing if no executable segment has it.
  std::optional<std::uint32_t> address_of(std::uint64_t file_offset) const;

  /// Which rule holds at an address, 0 if none does. Costs a search; the rule itself does not.
  std::uint16_t rule_number(std::uint32_t address) const {
    const std::size_t row = row_at(address);
    return row == none ? object_tables_format::no_rule : row_rules_[row] % object_tables_format::first_row;
  }
  CfiRule rule(std::uint16_t number) const;
  /// A DWARF expression that a rule refers to; empty if there is none.
  std::span<const std::byte> expression(std::int32_t place) const;
  /// The function around an address, as the unwinding tables have it; both 0 if they do not.
  object_tables_format::CodeExtent function_at(std::uint32_t address) const;
  /// True in functions that nothing calls.
  bool is_root(std::uint32_t address) const;

  bool has_ocaml_code() const { return !returns_.empty(); }
  /// A call in OCaml code.
  struct Call {
    std::uint32_t return_address = 0;
    std::uint16_t frame_data = 0;  ///< size of the frame in bytes, with the return address, plus two flags
    std::size_t index = 0;         ///< for places()

    bool returns_to_c() const { return frame_data == object_tables_format::return_to_c; }
    std::uint32_t frame_bytes() const { return frame_data & ~3u; }
  };
  std::optional<Call> call_at(std::uint32_t return_address) const;
  /// The first call of OCaml code whose return address is at or behind an address.
  std::optional<Call> call_from(std::uint32_t address) const;
  /// Calls `visit(SourcePlace, is_inlined)` for each place of a call, innermost first.
  template <typename Visit>
  void for_each_place(const Call& call, Visit&& visit) const {
    if (call.index >= return_places_.size()) return;
    std::size_t index = return_places_[call.index];
    for (std::size_t level = 0; index != 0 && level < max_inlined; ++level, ++index) {
      if (index > places_.size()) return;
      const auto& place = places_[index - 1];
      const bool has_more = (place.line & object_tables_format::more_places) != 0;
      SourcePlace found{.function = {}, .file = {}, .line = place.line & ~object_tables_format::more_places};
      if (place.name < place_names_.size()) {
        found.function = text(place_names_[place.name].function);
        found.file = text(place_names_[place.name].file);
      }
      visit(found, has_more && level + 1 < max_inlined && index < places_.size());
      if (!has_more) return;
    }
  }

  /// The line that an instruction is of, by the debug information of the file.
  struct Line {
    std::uint32_t begin = 0;  ///< address of the first instruction of the line in a row
    std::uint32_t number = 0;
    std::string_view file;  ///< can be empty
  };
  std::optional<Line> line_at(std::uint32_t address) const;

  struct Symbol {
    std::string_view name;
    std::uint32_t begin = 0;
  };
  std::optional<Symbol> symbol_at(std::uint32_t address) const;

  /// caml_raise_exn and caml_reraise_exn; both 0 if they are not known.
  object_tables_format::CodeExtent raise_code() const { return header_.raise; }
  /// The part of OCaml's runtime that is written in assembly; both 0 if it is not known.
  object_tables_format::CodeExtent system_code() const { return header_.system; }

 private:
  static constexpr std::size_t none = SIZE_MAX;

  using Memory = std::variant<std::vector<std::byte>, MemoryMap>;
  static Result<ObjectTables> over(std::span<const std::byte> bytes, Memory memory);
  explicit ObjectTables(Memory memory) : memory_(std::move(memory)) {}

  std::string_view text(std::uint32_t place) const;
  std::size_t row_at(std::uint32_t address) const;
  Call call(std::size_t index) const {
    return {.return_address = returns_[index],
            .frame_data = index < frame_data_.size() ? frame_data_[index] : object_tables_format::return_to_c,
            .index = index};
  }

  Memory memory_;
  std::uint32_t id_ = 0;
  object_tables_format::Header header_{};
  std::span<const object_tables_format::Segment> segments_;
  std::span<const std::uint32_t> row_begins_;
  std::span<const std::uint16_t> row_rules_;
  std::span<const std::uint32_t> rule_offsets_;
  std::span<const std::byte> rules_, expressions_, line_rows_, strings_;
  std::span<const std::uint32_t> returns_;
  std::span<const std::uint16_t> frame_data_;
  std::span<const std::uint32_t> return_places_;
  std::span<const object_tables_format::Place> places_;
  std::span<const object_tables_format::PlaceName> place_names_;
  std::span<const std::uint32_t> line_begins_, line_offsets_;
  std::span<const std::uint32_t> symbol_begins_;
  std::span<const object_tables_format::Symbol> symbols_;
  std::span<const object_tables_format::CodeExtent> roots_;
};

}  // namespace rtev
