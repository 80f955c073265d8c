// SPDX-License-Identifier: MIT
#include "unwind/rule_list.hpp"

#include <bit>
#include <cstring>

namespace rtev {
namespace {

using namespace object_tables_format;

constexpr std::size_t max_expression = 128, max_expressions = 1u << 24;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void RowState::save(const SavedRegister& where) {
  const std::uint64_t bit = std::uint64_t{1} << where.number;
  is_saved = where.kind == SaveKind::same ? is_saved & ~bit : is_saved | bit;
  saved[where.number] = where;
}

void RowState::restore(std::uint64_t number, const RowState& initial) {
  if (number >= register_count) return;
  SavedRegister where = initial.saved[number];
  where.number = static_cast<std::uint8_t>(number);
  save(where);
}

RuleList::RuleList(CfiTables& tables) : tables_(tables) {
  const RuleHead none;
  number_of(text_of(std::as_bytes(std::span{&none, 1})));
}

std::uint16_t RuleList::number_of(const RowState& state, std::uint64_t return_column, bool is_signal_frame) {
  if (state.cfa == CfaKind::none || return_column >= register_count) return no_rule;
  RuleHead head{.cfa = state.cfa, .cfa_register = state.cfa_register, .cfa_value = state.cfa_value};
  if (is_signal_frame) head.flags |= signal_frame;
  if (state.return_is_signed) head.flags |= return_is_signed;
  if (state.saved[return_column].kind == SaveKind::undefined) head.flags |= is_root;
  std::array<std::byte, sizeof(RuleHead) + register_count * sizeof(SavedRegister)> bytes;
  std::size_t size = sizeof head;
  for (std::uint64_t rest = state.is_saved; rest != 0; rest &= rest - 1) {
    const SavedRegister& saved = state.saved[static_cast<std::size_t>(std::countr_zero(rest))];
    std::memcpy(bytes.data() + size, &saved, sizeof saved);
    size += sizeof saved;
    ++head.saves;
  }
  std::memcpy(bytes.data(), &head, sizeof head);
  return number_of(text_of(std::span{bytes}.first(size)));
}

std::optional<std::int32_t> RuleList::expression(std::span<const std::byte> bytes) {
  if (bytes.empty() || bytes.size() > max_expression || tables_.expressions.size() > max_expressions)
    return std::nullopt;
  const auto offset = static_cast<std::uint32_t>(tables_.expressions.size());
  const auto [place, is_new] = expressions_.try_emplace(std::string(text_of(bytes)), offset);
  if (is_new) {
    tables_.expressions.push_back(static_cast<std::byte>(bytes.size()));
    tables_.expressions.insert(tables_.expressions.end(), bytes.begin(), bytes.end());
  }
  return static_cast<std::int32_t>(place->second);
}

std::uint16_t RuleList::number_of(std::string_view rule) {
  const auto found = numbers_.find(rule);
  if (found != numbers_.end()) return static_cast<std::uint16_t>(found->second);
  const std::size_t number = tables_.rule_offsets.size();
  // Of a file with that many, the rest of the code cannot be unwound.
  if (number >= first_row) return no_rule;
  tables_.rule_offsets.push_back(static_cast<std::uint32_t>(tables_.rules.size()));
  const auto bytes = std::as_bytes(std::span{rule});
  tables_.rules.insert(tables_.rules.end(), bytes.begin(), bytes.end());
  numbers_.emplace(rule, static_cast<std::uint32_t>(number));
  return static_cast<std::uint16_t>(number);
}

}  // namespace rtev
