// SPDX-License-Identifier: MIT
// The rules of unwinding tables: each combination of places in which a caller's registers are is kept once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "unwind/cfi_compiler.hpp"
#include "unwind/object_tables_format.hpp"

namespace rtev {

/// Registers that can be tracked: x0 to x30 and sp on arm64, rax to rip on x86-64.
inline constexpr std::size_t register_count = 33;

/// The state of the machine that DWARF describes: where the caller's registers are.
struct RowState {
  object_tables_format::CfaKind cfa = object_tables_format::CfaKind::none;
  std::uint8_t cfa_register = 0;
  bool return_is_signed = false;
  std::int32_t cfa_value = 0;
  std::uint64_t is_saved = 0;  ///< bit n: saved[n] says something else than `same`
  std::array<object_tables_format::SavedRegister, register_count> saved{};

  /// `where.number` must be below register_count.
  void save(const object_tables_format::SavedRegister& where);
  void restore(std::uint64_t number, const RowState& initial);
};

/// Writes CfiTables::rule_offsets, rules and expressions.
class RuleList {
 public:
  explicit RuleList(CfiTables& tables);

  /// no_rule if the caller cannot be found, or if there are too many rules.
  std::uint16_t number_of(const RowState& state, std::uint64_t return_column, bool is_signal_frame);
  /// Where an expression is; nothing if it is too long.
  std::optional<std::int32_t> expression(std::span<const std::byte> bytes);

 private:
  /// Hashes texts in a map without a copy of the one that is looked for.
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using TextNumbers = std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>>;

  std::uint16_t number_of(std::string_view rule);

  CfiTables& tables_;
  TextNumbers numbers_, expressions_;
};

}  // namespace rtev
