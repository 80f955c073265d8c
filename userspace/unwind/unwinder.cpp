// SPDX-License-Identifier: MIT
#include "unwind/unwinder.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <tuple>

#include "base/processor.hpp"
#include "unwind/cfi_expression.hpp"

namespace rtev {
namespace {

using namespace object_tables_format;

/// Of the frame of caml_stash_backtrace so many bytes are looked at.
constexpr std::uint64_t max_stash_frame = 512;
constexpr unsigned r10 = 10, r13 = 13;
/// Oldest part of an OCaml stack: what is searched of it, in words, and what a chain of frames is at the least.
constexpr std::size_t max_gap_words = 4096, min_chain = 3, max_chain = 4096;
/// Of all chains of a stack: tables that lie may let each of them be long.
constexpr std::size_t max_chained = 16'384;
/// OCaml's own limit is 1 GiB by default.
constexpr std::uint64_t max_gap_bytes = 1u << 30;

}  // namespace

Unwinder::Unwinder() : slots_(std::make_unique<std::array<Slot, slot_count>>()) {}

const Unwinder::Slot& Unwinder::look_up(const ObjectTables& tables, std::uint32_t address, bool is_return_address) {
  const std::uint64_t key =
      std::uint64_t{tables.id()} << 33 | std::uint64_t{address} << 1 | (is_return_address ? 1 : 0);
  Slot& slot = (*slots_)[(key * 0x9e3779b97f4a7c15u) >> 52];
  if (slot.key == key) return slot;
  const std::uint32_t inside = is_return_address ? address - 1 : address;
  std::uint16_t rule = tables.rule_number(inside);
  if (is_return_address) {
    // What returns to code of the runtime in assembly, or of a signal's return, can be its first instruction.
    const std::uint16_t there = tables.rule_number(address);
    const bool is_special = (tables.rule(there).head.flags & signal_frame) != 0;
    if (is_special && (rule == no_rule || (tables.rule(rule).head.flags & signal_frame) != 0)) rule = there;
  }
  const CodeExtent raise = tables.raise_code();
  const auto call = is_return_address ? tables.call_at(address) : std::nullopt;
  slot = {.key = key,
          .rule = rule,
          .frame_bytes = static_cast<std::uint16_t>(call && !call->returns_to_c() ? call->frame_bytes() : 0),
          .is_root = tables.is_root(inside),
          .is_raise = inside >= raise.begin && inside < raise.end};
  return slot;
}

/// Unwinds one stack.
class Unwinder::Walk {
 public:
  Walk(Unwinder& unwinder, const StackCopy& stack, const AddressSpace& space, std::size_t max_frames, Unwound& result)
      : unwinder_(unwinder), stack_(stack), space_(space), max_frames_(max_frames), result_(result) {}

  void run() {
    result_.frames.clear();
    result_.end = StackEnd::unknown;
    result_.is_code_missing = false;
    if (max_frames_ == 0) return;
    if (!begin()) return;
    while (step() && enter_frame()) {
    }
  }

 private:
  bool end(StackEnd why) {
    result_.end = why;
    return false;
  }

  /// Nothing of the registers says which machine they are of; where one of them is in code with tables, these do.
  bool begin() {
    registers_.values = stack_.registers;
    for (const Processor* processor : processors) {
      const std::uint64_t pc = stack_.registers[processor->pc];
      const std::size_t mapping = space_.find(pc);
      if (mapping == AddressSpace::npos) continue;
      const auto& tables = space_.mapping(mapping).tables;
      if (tables && tables->machine() != processor->elf) continue;
      processor_ = processor;
      registers_.known = (std::uint64_t{2} << processor->pc) - 1;
      pc_ = pc;
      return enter_frame();
    }
    result_.frames.push_back({.pc = stack_.registers[x86_64.pc]});
    result_.is_code_missing = true;
    return false;
  }

  /// Adds the frame that pc_ is in. False if the stack ends with it, or before it.
  bool enter_frame() {
    if (result_.frames.size() == max_frames_) return end(StackEnd::too_deep);
    const std::uint64_t inside = is_return_ ? pc_ - 1 : pc_;
    mapping_ = space_.find(inside, mapping_);
    // A caller that is in no code is none.
    if (mapping_ == AddressSpace::npos) {
      result_.is_code_missing = true;
      return end(StackEnd::unknown);
    }
    const CodeMapping& mapping = space_.mapping(mapping_);
    const auto address = mapping.object_address(inside);
    UnwoundFrame frame{.pc = pc_, .is_return_address = is_return_, .follows_gap = follows_gap_, .mapping = mapping_};
    follows_gap_ = false;
    const bool is_innermost = result_.frames.empty();
    if (mapping.tables && !address && !is_innermost) return end(StackEnd::unknown);
    result_.is_code_missing |= mapping.is_unread;
    if (address) frame.address = *address + (is_return_ ? 1 : 0);
    result_.frames.push_back(frame);
    if (!address) return end(StackEnd::unknown);
    tables_ = mapping.tables.get();
    if (tables_->machine() != processor_->elf) return end(StackEnd::unknown);
    address_ = frame.address;
    return is_no_cycle();
  }

  /// The same frame again would come again for ever.
  bool is_no_cycle() {
    const std::uint64_t sp = registers_.values[processor_->stack_pointer];
    if (is_return_ && pc_ == marked_pc_ && sp == marked_sp_) return end(StackEnd::unknown);
    if ((result_.frames.size() & (result_.frames.size() - 1)) == 0) {
      marked_pc_ = pc_;
      marked_sp_ = sp;
    }
    return true;
  }

  /// From a frame to the one that called it.
  bool step() {
    const Slot& place = unwinder_.look_up(*tables_, address_, is_return_);
    if (place.is_root) return end(StackEnd::complete);
    if (place.is_raise && processor_ == &x86_64 && is_on_c_stack()) return step_out_of_raise();
    if (place.frame_bytes >= 8 && processor_ == &x86_64) return step_out_of_ocaml(place.frame_bytes);
    const CfiRule rule = tables_->rule(place.rule);
    if (!rule) return end(StackEnd::unknown);
    if ((rule.head.flags & is_root) != 0) return end(StackEnd::complete);
    const std::uint64_t sp = registers_.values[processor_->stack_pointer];

    std::uint64_t cfa = 0;
    std::optional<std::uint64_t> base;
    if (rule.head.cfa == CfaKind::register_offset) {
      const unsigned number = rule.head.cfa_register;
      if (!registers_.has(number)) return end(StackEnd::unknown);
      const auto offset = static_cast<std::uint64_t>(std::int64_t{rule.head.cfa_value});
      base = registers_.values[number];
      cfa = *base + offset;
      // A function does not pop more than it pushed.
      const bool goes_on = cfa > sp || (processor_->has_link_register && cfa == sp && !is_return_);
      if (number == processor_->stack_pointer && !goes_on) return end(StackEnd::unknown);
    } else if (rule.head.cfa == CfaKind::expression) {
      const Evaluated value =
          evaluate_cfi(tables_->expression(rule.head.cfa_value), registers_, stack_, std::nullopt, hint_);
      if (value.state == Evaluated::State::not_copied) return end(StackEnd::not_copied);
      if (value.state != Evaluated::State::done) return end(StackEnd::unknown);
      cfa = value.value;
    } else {
      return end(StackEnd::unknown);
    }

    // All are computed from the registers of this frame.
    std::size_t count = 0;
    bool has_return = false, is_interrupted = false;
    for (const SavedRegister& saved : rule.saved) {
      if (saved.number >= registers_.values.size() || count == restored_.size()) continue;
      const bool is_return = saved.number == processor_->return_column;
      const std::uint64_t slot = cfa + static_cast<std::uint64_t>(std::int64_t{saved.value});
      // Compilers do not say that an epilogue has popped a register: it has its value back.
      if (saved.kind == SaveKind::at_offset && !is_return && !is_return_ && slot < sp) continue;
      Restored& value = restored_[count++];
      value.number = saved.number;
      if (saved.kind == SaveKind::at_offset) {
        value.is_known = stack_.read_word(slot, hint_, value.value);
        if (is_return && !value.is_known) return cut(slot, base);
      } else {
        const Evaluated evaluated = value_of(saved, cfa);
        value.is_known = evaluated.state == Evaluated::State::done;
        value.value = evaluated.value;
        if (is_return && !value.is_known)
          return end(evaluated.state == Evaluated::State::not_copied ? StackEnd::not_copied : StackEnd::unknown);
      }
      if (is_return) {
        has_return = true;
        is_interrupted = (rule.head.flags & signal_frame) != 0 &&
                         (saved.kind == SaveKind::at_expression || saved.kind == SaveKind::by_expression);
      }
    }
    // Only the innermost function can have its return address in a register still.
    if (!has_return && (!processor_->has_link_register || is_return_ || !registers_.has(processor_->return_column)))
      return end(StackEnd::unknown);

    previous_sp_ = sp;
    registers_.set(processor_->stack_pointer, cfa);
    for (const Restored& each : std::span{restored_}.first(count)) {
      if (each.is_known)
        registers_.set(each.number, each.value);
      else
        registers_.forget(each.number);
    }
    pc_ = registers_.values[processor_->return_column];
    if ((rule.head.flags & return_is_signed) != 0) pc_ &= processor_->signed_address_mask;
    if (!is_interrupted) registers_.known &= processor_->kept;
    is_return_ = !is_interrupted;
    return true;
  }

  /// The frametable is what the garbage collector goes by. Unwinding tables are wrong where it is called in the body of
  /// a `try`, which has two more words on the stack: that code stands behind the function, where the tables know of
  /// none.
  bool step_out_of_ocaml(std::uint32_t frame_bytes) {
    previous_sp_ = registers_.values[processor_->stack_pointer];
    const std::uint64_t caller_sp = previous_sp_ + frame_bytes;
    if (!stack_.read_word(caller_sp - 8, hint_, pc_)) return cut(caller_sp - 8, previous_sp_);
    // OCaml code keeps no registers.
    registers_.known = 0;
    registers_.set(processor_->stack_pointer, caller_sp);
    return true;
  }

  Evaluated value_of(const SavedRegister& saved, std::uint64_t cfa) {
    const std::uint64_t place = cfa + static_cast<std::uint64_t>(std::int64_t{saved.value});
    switch (saved.kind) {
      case SaveKind::offset:
        return {Evaluated::State::done, place};
      case SaveKind::in_register: {
        const auto number = static_cast<unsigned>(saved.value);
        if (saved.value < 0 || !registers_.has(number)) return {};
        return {Evaluated::State::done, registers_.values[number]};
      }
      case SaveKind::at_expression:
      case SaveKind::by_expression: {
        const Evaluated value = evaluate_cfi(tables_->expression(saved.value), registers_, stack_, cfa, hint_);
        if (value.state != Evaluated::State::done || saved.kind == SaveKind::by_expression) return value;
        return at(value.value);
      }
      default:
        return {};
    }
  }

  Evaluated at(std::uint64_t place) {
    const auto word = stack_.read_word(place, hint_);
    return word ? Evaluated{Evaluated::State::done, *word} : Evaluated{Evaluated::State::not_copied, 0};
  }

  /// The call in OCaml code that returns to an address; nothing if there is none.
  std::optional<ObjectTables::Call> ocaml_call(std::uint64_t return_address) const {
    const std::size_t mapping = space_.find(return_address - 1, mapping_);
    if (mapping == AddressSpace::npos) return std::nullopt;
    const auto address = space_.mapping(mapping).object_address(return_address - 1);
    return address ? space_.mapping(mapping).tables->call_at(*address + 1) : std::nullopt;
  }

  /// In caml_raise_exn and caml_reraise_exn: they go to the C stack to record a backtrace, and their tables do not say
  /// so.
  bool is_on_c_stack() {
    if (is_return_) return true;
    const auto top = stack_.read_word(registers_.values[processor_->stack_pointer], hint_);
    return !top || !ocaml_call(*top);
  }

  /// They leave OCaml's stack pointer in r13, which caml_stash_backtrace keeps; those of OCaml 5.1 in r10, which it
  /// does not keep. But it goes from frame to frame itself, and the stack pointer of the one that it has reached is in
  /// its own.
  bool step_out_of_raise() {
    for (const unsigned number : {r13, r10})
      if (registers_.has(number) && return_to_ocaml(registers_.values[number])) return true;
    if (!is_return_) return end(StackEnd::unknown);
    // At its beginning r10 still is what it was.
    if (result_.frames.size() == 2 && return_to_ocaml(stack_.registers[r10])) return true;
    std::uint64_t reached = 0;
    const std::uint64_t end_of_frame = registers_.values[processor_->stack_pointer];
    for (std::uint64_t at = previous_sp_; at < end_of_frame && at - previous_sp_ < max_stash_frame; at += 8) {
      const std::uint64_t sp = stack_.read_word(at, hint_).value_or(0);
      const auto caller = stack_.read_word(sp - 8, hint_);
      if (caller && ocaml_call(*caller) && (reached == 0 || sp < reached)) reached = sp;
    }
    if (reached == 0 || !return_to_ocaml(reached - 8)) return end(StackEnd::unknown);
    follows_gap_ = true;
    return true;
  }

  /// Goes on in OCaml code if the word at `sp` returns there.
  bool return_to_ocaml(std::uint64_t sp) {
    const auto caller = stack_.read_word(sp, hint_);
    if (!caller || !ocaml_call(*caller)) return false;
    registers_.set(processor_->stack_pointer, sp + 8);
    registers_.known &= processor_->kept;
    pc_ = *caller;
    is_return_ = true;
    return true;
  }

  /// The word at `place` would be the return address, but was not copied. `base`: what it was reckoned from.
  bool cut(std::uint64_t place, std::optional<std::uint64_t> base) {
    const bool is_ocaml = is_return_ && tables_->call_at(address_);
    if (is_ocaml && resume_behind(place)) return true;
    return end(base && ends_before(place, *base) ? StackEnd::truncated : StackEnd::not_copied);
  }

  /// Whether the copy that the frame is in ends before this place. If the base is in another one, or in none, the place
  /// may be on another stack: code of the runtime that goes from one to the other keeps it in a register.
  bool ends_before(std::uint64_t place, std::uint64_t base) const {
    const std::uint64_t sp = registers_.values[processor_->stack_pointer];
    return std::ranges::any_of(stack_.copies, [&](const MemoryCopy& copy) {
      const auto is_in = [&](std::uint64_t address) { return address - copy.address <= copy.bytes.size(); };
      return is_in(sp) && is_in(base) && place > sp && !copy.contains(place, sizeof place);
    });
  }

  /// Goes on in the oldest part of an OCaml stack, of which the part before was not copied. Its first frame is where
  /// the sizes of all frames from there on lead exactly to the end of the stack.
  bool resume_behind(std::uint64_t place) {
    const MemoryCopy* next = nullptr;
    for (const MemoryCopy& copy : stack_.copies)
      if (copy.address > place && copy.address - place < max_gap_bytes && (!next || copy.address < next->address))
        next = &copy;
    if (!next) return false;
    const std::uint64_t begin = (next->address + 7) & ~std::uint64_t{7};
    for (std::size_t word = 0; word < max_gap_words && chained_ < max_chained; ++word) {
      const std::uint64_t slot = begin + 8 * word;
      const auto return_address = stack_.read_word(slot, hint_);
      if (!return_address) return false;
      if (!leads_to_end(slot, *return_address)) continue;
      registers_.known = 0;
      follows_gap_ = true;
      return return_to_ocaml(slot);
    }
    return false;
  }

  bool leads_to_end(std::uint64_t slot, std::uint64_t return_address) {
    for (std::size_t length = 0; length < max_chain && chained_ < max_chained; ++length, ++chained_) {
      const auto call = ocaml_call(return_address);
      if (!call) return false;
      // What is there above the last frame: 32 bytes, and the 32 that describe the stack.
      if (call->returns_to_c()) return length >= min_chain && stack_.read_word(slot + 8 + 32 + 24, hint_).has_value();
      if (call->frame_bytes() < 8) return false;
      slot += call->frame_bytes();
      const auto next = stack_.read_word(slot, hint_);
      if (!next) return false;
      return_address = *next;
    }
    return false;
  }

  /// A register of the caller.
  struct Restored {
    std::uint8_t number = 0;
    bool is_known = false;
    std::uint64_t value = 0;
  };

  Unwinder& unwinder_;
  const StackCopy& stack_;
  const AddressSpace& space_;
  std::size_t max_frames_;
  Unwound& result_;

  const Processor* processor_ = &x86_64;
  const ObjectTables* tables_ = nullptr;
  FrameRegisters registers_;
  std::array<Restored, std::tuple_size_v<decltype(FrameRegisters::values)>> restored_{};
  std::uint64_t pc_ = 0;
  std::size_t mapping_ = AddressSpace::npos;
  std::uint32_t address_ = 0;
  bool is_return_ = false, follows_gap_ = false;
  std::uint64_t previous_sp_ = 0;
  std::uint64_t marked_pc_ = 0, marked_sp_ = 0;
  std::size_t chained_ = 0;
  std::size_t hint_ = 0;
};

void Unwinder::unwind(const StackCopy& stack, const AddressSpace& space, std::size_t max_frames, Unwound& result) {
  Walk(*this, stack, space, max_frames, result).run();
}

Unwound unwind(const StackCopy& stack, const AddressSpace& space, std::size_t max_frames) {
  Unwound result;
  Unwinder().unwind(stack, space, max_frames, result);
  return result;
}

}  // namespace rtev
