// SPDX-License-Identifier: MIT
#include "unwind/cfi_compiler.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/processor.hpp"
#include "unwind/byte_cursor.hpp"
#include "unwind/rule_list.hpp"

namespace rtev {
namespace {

using namespace object_tables_format;

constexpr std::size_t max_cfi_rows = 8u << 20;
constexpr std::size_t max_functions = 2u << 20, max_commons = 1u << 16;
constexpr std::size_t max_remembered = 16;

struct CommonEntry {
  bool usable = false;
  bool has_data = false;  ///< its functions have augmentation data
  bool is_signal_frame = false;
  std::uint8_t pointer_encoding = 0;
  std::uint64_t code_factor = 1;
  std::int64_t data_factor = 1;
  std::uint64_t return_column = 0;
  RowState initial{};
};

/// Where no CommonEntry is.
constexpr std::uint32_t no_common = UINT32_MAX;

struct FunctionEntry {
  std::uint32_t begin = 0, end = 0;
  std::uint32_t common = 0;  ///< where its CommonEntry is
  std::uint32_t code = 0, code_bytes = 0;
};

enum PointerEncoding : std::uint8_t { absolute = 0, relative = 0x10, omitted = 0xff };

class Compiler {
 public:
  Compiler(const EhFrame& frame, WorkBudget& budget) : frame_(frame), budget_(budget), rules_(tables_) {}

  CfiTables compile() {
    collect();
    if (!budget_.has_left_now()) return {};
    std::ranges::stable_sort(functions_, {}, &FunctionEntry::begin);
    add_jumps();
    std::uint32_t covered = 0;
    for (const FunctionEntry& function : functions_) {
      if (!budget_.has_left()) return {};
      if (tables_.row_begins.size() > max_cfi_rows) break;
      if (function.begin < covered) {
        forget_from(function.begin);
        covered = std::max(covered, function.end);
        continue;
      }
      if (function.begin > covered && !tables_.row_begins.empty()) add_row(covered, no_rule);
      compile(function);
      covered = function.end;
    }
    if (!tables_.row_begins.empty()) add_row(covered, no_rule);
    if (budget_.is_used_up()) return {};
    return std::move(tables_);
  }

 private:
  /// Finds all functions, and what they have in common.
  void collect() {
    ByteCursor all(frame_.bytes);
    while (!all.at_end() && functions_.size() < max_functions && budget_.has_left()) {
      const std::size_t begin = all.position();
      std::uint64_t length = all.take<std::uint32_t>();
      // Ends the entries that one linked file brought; those of others may follow.
      if (length == 0) continue;
      if (length == 0xffffffff) length = all.take<std::uint64_t>();
      const std::size_t body = all.position();
      const auto bytes = all.take_bytes(length);
      if (!all.ok()) return;
      ByteCursor entry(bytes);
      const auto distance = entry.take<std::uint32_t>();
      if (!entry.ok()) continue;
      if (distance == 0 && commons_.size() < max_commons)
        commons_.emplace(static_cast<std::uint32_t>(begin), common_entry(entry));
      else if (distance != 0 && distance <= body)
        add_function(entry, body, static_cast<std::uint32_t>(body - distance));
    }
  }

  /// Adds the jumps that no function has.
  void add_jumps() {
    if (frame_.jumps.empty()) return;
    const Processor* const processor = find_processor(frame_.machine);
    if (processor == nullptr) return;
    CommonEntry common{.usable = true, .return_column = processor->return_column};
    set_cfa(common.initial, processor->stack_pointer, processor->has_link_register ? 0 : 8);
    if (!processor->has_link_register) save(common.initial, processor->return_column, SaveKind::at_offset, -8);
    commons_.emplace(no_common, common);
    for (const AddressRange& jumps : frame_.jumps) {
      const std::uint64_t end = jumps.end - frame_.link_base;
      if (jumps.begin < frame_.link_base || jumps.begin >= jumps.end || end >= UINT32_MAX) continue;
      const auto begin = static_cast<std::uint32_t>(jumps.begin - frame_.link_base);
      const auto after = std::ranges::lower_bound(functions_, begin, {}, &FunctionEntry::begin);
      if (after != functions_.end() && after->begin < end) continue;
      if (after != functions_.begin() && std::prev(after)->end > begin) continue;
      functions_.insert(after, {.begin = begin, .end = static_cast<std::uint32_t>(end), .common = no_common});
    }
  }

  CommonEntry common_entry(ByteCursor entry) {
    CommonEntry common;
    const auto version = entry.take<std::uint8_t>();
    if (version != 1 && version != 3 && version != 4) return common;
    const std::string_view augmentation = entry.take_text();
    if (version == 4 && (entry.take<std::uint8_t>() != 8 || entry.take<std::uint8_t>() != 0)) return common;
    common.code_factor = entry.take_uleb();
    common.data_factor = entry.take_sleb();
    common.return_column = version == 1 ? entry.take<std::uint8_t>() : entry.take_uleb();
    if (!augmentation.empty()) {
      if (augmentation.front() != 'z') return common;
      common.has_data = true;
      ByteCursor data(entry.take_bytes(entry.take_uleb()));
      for (const char letter : augmentation.substr(1)) {
        switch (letter) {
          case 'R':
            common.pointer_encoding = data.take<std::uint8_t>();
            break;
          case 'P': {
            const auto encoding = data.take<std::uint8_t>();
            if ((encoding & 0x70) == 0x50) return common;  // aligned: no compiler writes it
            take_encoded(data, encoding);
            break;
          }
          case 'L':
            data.take<std::uint8_t>();
            break;
          case 'S':
            common.is_signal_frame = true;
            break;
          case 'B':  // which key signs return addresses
          case 'G':  // whether the stack is tagged
            break;
          default:
            return common;
        }
      }
      if (!data.ok()) return common;
    }
    if (!entry.ok()) return common;
    common.usable = run(entry.take_bytes(entry.left()), common, common.initial, nullptr);
    return common;
  }

  void add_function(ByteCursor entry, std::size_t body, std::uint32_t common_offset) {
    const auto found = commons_.find(common_offset);
    if (found == commons_.end()) return;
    const CommonEntry& common = found->second;
    const std::uint64_t here = frame_.address + body + entry.position();
    const std::uint8_t encoding = common.pointer_encoding;
    const std::uint8_t application = encoding & 0xf0;
    std::uint64_t begin = take_encoded(entry, encoding);
    if (application == relative)
      begin += here;
    else if (application != absolute)
      return;
    const std::uint64_t size = take_encoded(entry, encoding & 0x07);
    if (common.has_data) entry.take_bytes(entry.take_uleb());
    if (!entry.ok() || size == 0) return;
    // What the linker dropped has an address that is none.
    const auto code =
        std::ranges::find_if(frame_.code, [&](const AddressRange& range) { return range.contains(begin); });
    if (code == frame_.code.end() || size > code->end - begin) return;
    const std::uint64_t offset = begin - frame_.link_base;
    if (begin < frame_.link_base || offset + size >= UINT32_MAX) return;
    const std::size_t position = body + entry.position();
    functions_.push_back({.begin = static_cast<std::uint32_t>(offset),
                          .end = static_cast<std::uint32_t>(offset + size),
                          .common = common_offset,
                          .code = static_cast<std::uint32_t>(position),
                          .code_bytes = static_cast<std::uint32_t>(entry.left())});
  }

  static std::uint64_t take_encoded(ByteCursor& cursor, std::uint8_t encoding) {
    switch (encoding & 0x0f) {
      case 0x00:
      case 0x04:
      case 0x0c:
        return cursor.take<std::uint64_t>();
      case 0x01:
        return cursor.take_uleb();
      case 0x02:
        return cursor.take<std::uint16_t>();
      case 0x03:
        return cursor.take<std::uint32_t>();
      case 0x09:
        return static_cast<std::uint64_t>(cursor.take_sleb());
      case 0x0a:
        return static_cast<std::uint64_t>(std::int64_t{cursor.take<std::int16_t>()});
      case 0x0b:
        return static_cast<std::uint64_t>(std::int64_t{cursor.take<std::int32_t>()});
      default:
        cursor.take_bytes(UINT64_MAX);  // fails
        return 0;
    }
  }

  void add_row(std::uint32_t begin, std::uint16_t rule) {
    if (!tables_.row_begins.empty() && tables_.row_begins.back() == begin) {
      tables_.row_rules.back() = rule;
      return;
    }
    tables_.row_begins.push_back(begin);
    tables_.row_rules.push_back(rule);
  }

  /// Two functions in one place: neither is believed.
  void forget_from(std::uint32_t begin) {
    while (!tables_.row_begins.empty() && tables_.row_begins.back() >= begin) {
      tables_.row_begins.pop_back();
      tables_.row_rules.pop_back();
    }
    add_row(begin, no_rule);
  }

  void compile(const FunctionEntry& function) {
    const CommonEntry& common = commons_.at(function.common);
    const std::size_t before = tables_.row_begins.size();
    RowState state = common.initial;
    if (common.usable && run(frame_.bytes.subspan(function.code, function.code_bytes), common, state, &function)) {
      return;
    }
    tables_.row_begins.resize(before);
    tables_.row_rules.resize(before);
    add_row(function.begin, no_rule | first_row);
  }

  /// Runs instructions; adds the rows of a function if it is given. False if an instruction is not known.
  bool run(std::span<const std::byte> bytes, const CommonEntry& common, RowState& state, const FunctionEntry* function);
  bool run_extended(std::uint8_t code, ByteCursor& cursor, const CommonEntry& common, RowState& state);

  std::optional<std::int32_t> factored(const CommonEntry& common, std::int64_t offset) {
    std::int64_t value = 0;
    if (__builtin_mul_overflow(offset, common.data_factor, &value) || value != static_cast<std::int32_t>(value))
      return std::nullopt;
    return static_cast<std::int32_t>(value);
  }

  /// Sets where a register is. False if the value is not one.
  static bool save(RowState& state, std::uint64_t number, SaveKind kind, std::optional<std::int32_t> value) {
    if (!value) return false;
    // The others, of vectors above all, are not needed.
    if (number >= register_count) return true;
    state.save({.number = static_cast<std::uint8_t>(number), .kind = kind, .unused = 0, .value = *value});
    return true;
  }

  static bool set_cfa(RowState& state, std::uint64_t number, std::optional<std::int32_t> value) {
    if (!value || number >= register_count) return false;
    state.cfa = CfaKind::register_offset;
    state.cfa_register = static_cast<std::uint8_t>(number);
    state.cfa_value = *value;
    return true;
  }

  static std::optional<std::int32_t> small(std::uint64_t value) {
    if (value > INT32_MAX) return std::nullopt;
    return static_cast<std::int32_t>(value);
  }

  EhFrame frame_;
  WorkBudget& budget_;
  CfiTables tables_;
  RuleList rules_;
  std::unordered_map<std::uint32_t, CommonEntry> commons_;
  std::vector<FunctionEntry> functions_;
  std::vector<RowState> remembered_;
};

bool Compiler::run(std::span<const std::byte> bytes, const CommonEntry& common, RowState& state,
                   const FunctionEntry* function) {
  ByteCursor cursor(bytes);
  std::uint32_t place = function ? function->begin : 0;
  bool is_first = true;
  remembered_.clear();
  const auto finish_row = [&] {
    const std::uint16_t rule = rules_.number_of(state, common.return_column, common.is_signal_frame);
    if (is_first)
      add_row(place, rule | first_row);
    else if (tables_.row_rules.back() % first_row != rule)
      add_row(place, rule);
    is_first = false;
  };
  const auto advance = [&](std::uint64_t steps) {
    std::uint64_t distance = 0;
    if (!function || __builtin_mul_overflow(steps, common.code_factor, &distance)) return false;
    if (distance == 0) return true;
    if (tables_.row_begins.size() > max_cfi_rows) return false;
    finish_row();
    // Behind the end of the function nothing counts.
    place = static_cast<std::uint32_t>(std::min<std::uint64_t>(distance, UINT32_MAX - place) + place);
    return true;
  };

  while (!cursor.at_end() && (!function || place < function->end)) {
    const auto byte = cursor.take<std::uint8_t>();
    const std::uint8_t low = byte & 0x3f;
    bool known = true;
    switch (byte & 0xc0) {
      case 0x40:
        known = advance(low);
        break;
      case 0x80:
        known = save(state, low, SaveKind::at_offset,
                     factored(common, static_cast<std::int64_t>(cursor.take_uleb() & INT64_MAX)));
        break;
      case 0xc0:
        state.restore(low, common.initial);
        break;
      default:
        switch (low) {
          case 0x00:  // nop
            break;
          case 0x02:
            known = advance(cursor.take<std::uint8_t>());
            break;
          case 0x03:
            known = advance(cursor.take<std::uint16_t>());
            break;
          case 0x04:
            known = advance(cursor.take<std::uint32_t>());
            break;
          case 0x0a:  // remember_state
            known = remembered_.size() < max_remembered;
            if (known) remembered_.push_back(state);
            break;
          case 0x0b:  // restore_state
            known = !remembered_.empty();
            if (known) {
              state = remembered_.back();
              remembered_.pop_back();
            }
            break;
          default:
            known = run_extended(low, cursor, common, state);
        }
    }
    if (!known || !cursor.ok() || !budget_.has_left()) return false;
  }
  if (function && place < function->end) finish_row();
  return cursor.ok();
}

bool Compiler::run_extended(std::uint8_t code, ByteCursor& cursor, const CommonEntry& common, RowState& state) {
  const auto unsigned_factored = [&] {
    return factored(common, static_cast<std::int64_t>(cursor.take_uleb() & INT64_MAX));
  };
  switch (code) {
    case 0x05: {  // offset_extended
      const std::uint64_t number = cursor.take_uleb();
      return save(state, number, SaveKind::at_offset, unsigned_factored());
    }
    case 0x06: {  // restore_extended
      state.restore(cursor.take_uleb(), common.initial);
      return true;
    }
    case 0x07:  // undefined
      return save(state, cursor.take_uleb(), SaveKind::undefined, 0);
    case 0x08:  // same_value
      return save(state, cursor.take_uleb(), SaveKind::same, 0);
    case 0x09: {  // register
      const std::uint64_t number = cursor.take_uleb(), other = cursor.take_uleb();
      return other < register_count && save(state, number, SaveKind::in_register, static_cast<std::int32_t>(other));
    }
    case 0x0c: {  // def_cfa
      const std::uint64_t number = cursor.take_uleb();
      return set_cfa(state, number, small(cursor.take_uleb()));
    }
    case 0x0d:  // def_cfa_register
      return state.cfa == CfaKind::register_offset && set_cfa(state, cursor.take_uleb(), state.cfa_value);
    case 0x0e:  // def_cfa_offset
      return state.cfa == CfaKind::register_offset && set_cfa(state, state.cfa_register, small(cursor.take_uleb()));
    case 0x0f: {  // def_cfa_expression
      const auto expression = rules_.expression(cursor.take_bytes(cursor.take_uleb()));
      state.cfa = CfaKind::expression;
      state.cfa_register = 0;
      state.cfa_value = expression.value_or(0);
      return expression.has_value();
    }
    case 0x10:    // expression
    case 0x16: {  // val_expression
      const std::uint64_t number = cursor.take_uleb();
      const auto expression = rules_.expression(cursor.take_bytes(cursor.take_uleb()));
      return save(state, number, code == 0x10 ? SaveKind::at_expression : SaveKind::by_expression, expression);
    }
    case 0x11: {  // offset_extended_sf
      const std::uint64_t number = cursor.take_uleb();
      return save(state, number, SaveKind::at_offset, factored(common, cursor.take_sleb()));
    }
    case 0x12: {  // def_cfa_sf
      const std::uint64_t number = cursor.take_uleb();
      return set_cfa(state, number, factored(common, cursor.take_sleb()));
    }
    case 0x13:  // def_cfa_offset_sf
      return state.cfa == CfaKind::register_offset &&
             set_cfa(state, state.cfa_register, factored(common, cursor.take_sleb()));
    case 0x14: {  // val_offset
      const std::uint64_t number = cursor.take_uleb();
      return save(state, number, SaveKind::offset, unsigned_factored());
    }
    case 0x15: {  // val_offset_sf
      const std::uint64_t number = cursor.take_uleb();
      return save(state, number, SaveKind::offset, factored(common, cursor.take_sleb()));
    }
    case 0x2d: {  // negate_ra_state
      const Processor* const processor = find_processor(frame_.machine);
      state.return_is_signed = !state.return_is_signed;
      return processor != nullptr && processor->signed_address_mask != 0;
    }
    case 0x2e:  // GNU_args_size: how much the caller pushed
      cursor.take_uleb();
      return true;
    default:
      return false;
  }
}

}  // namespace

CfiTables compile_cfi(const EhFrame& frame, WorkBudget& budget) {
  return Compiler(frame, budget).compile();
}

}  // namespace rtev
