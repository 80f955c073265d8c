// SPDX-License-Identifier: MIT
// From a copied stack to the calls that led to where the thread was.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "unwind/address_space.hpp"
#include "unwind/stack_copy.hpp"

namespace rtev {

/// A place in code where a thread was, or where it will return to.
struct UnwoundFrame {
  std::uint64_t pc = 0;
  /// The call is what stands before pc. False for the innermost frame, and for what a signal interrupted.
  bool is_return_address = false;
  /// Frames between the one before and this one are not known: that part of the stack was not copied.
  bool follows_gap = false;
  std::size_t mapping = AddressSpace::npos;  ///< in the address space; npos: no code is known there
  std::uint32_t address = 0;                 ///< of pc in the object's tables; 0 without tables
};

enum class StackEnd : std::uint8_t {
  complete,    ///< the last frame is where the program or thread began
  truncated,   ///< the stack is longer than what was copied of it
  not_copied,  ///< it goes on elsewhere, as where C code was called by OCaml's, and nothing of that was copied
  unknown,     ///< no tables, or none that say for certain who called the last frame
  too_deep,    ///< more frames than asked for
};

struct Unwound {
  std::vector<UnwoundFrame> frames;  ///< innermost first
  StackEnd end = StackEnd::unknown;
  /// It ended because the address space has no code where the caller, or the first frame, is.
  bool is_code_missing = false;
};

/// Unwinds stacks one after the other, and remembers which rule holds where. Not thread-safe.
class Unwinder {
 public:
  Unwinder();

  /// Each frame is certain: what is not ends the stack. Any copy and any tables will do; the number of frames bounds
  /// the work. The result's memory is used again.
  void unwind(const StackCopy& stack, const AddressSpace& space, std::size_t max_frames, Unwound& result);

 private:
  class Walk;

  /// What is known of a place in code.
  struct Slot {
    std::uint64_t key = 0;
    std::uint16_t rule = 0;
    /// Of an OCaml function that has called another: size of its frame, with the return address; 0 if it is none.
    std::uint16_t frame_bytes = 0;
    bool is_root = false;   ///< nothing calls this function
    bool is_raise = false;  ///< in caml_raise_exn or caml_reraise_exn
  };
  const Slot& look_up(const ObjectTables& tables, std::uint32_t address, bool is_return_address);

  static constexpr std::size_t slot_count = 4096;
  std::unique_ptr<std::array<Slot, slot_count>> slots_;
};

/// Unwinds one stack.
Unwound unwind(const StackCopy& stack, const AddressSpace& space, std::size_t max_frames);

}  // namespace rtev
