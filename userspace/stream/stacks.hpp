// SPDX-License-Identifier: MIT
// Stacks of threads, by the numbers that samples carry. Each frame and each stack is kept once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace rtev {

using StackIndex = std::uint32_t;  ///< of a StackTable; 0 is the empty stack
using FrameIndex = std::uint32_t;  ///< of a StackTable; 0 is a frame about which nothing is known

enum class FrameKind : std::uint8_t {
  unknown,  ///< the stack goes on, but there is no sure way to follow it
  cut,      ///< the stack is longer than what was copied of it
  ocaml,
  c,  ///< compiled code that is not OCaml's, in any language
  kernel,
  bytecode,  ///< of OCaml's interpreter: its frames are not known
};
/// "ocaml", "c", ...
std::string_view to_string(FrameKind kind);

/// A function in a stack. Programs choose the texts: escape them.
struct StackFrame {
  FrameKind kind = FrameKind::unknown;
  bool inlined = false;         ///< into the frame that follows it, which is its caller
  std::uint32_t line = 0;       ///< 0: unknown
  std::uint64_t address = 0;    ///< of its code in the object: link-time, or the kernel's
  std::string_view function{};  ///< as a reader of the source calls it, "Web.Server.handle"; empty: unknown
  std::string_view file{};      ///< of its source; empty: unknown
  std::string_view object{};    ///< path of the ELF file; empty: unknown
  std::string_view build_id{};  ///< of that file, in hexadecimal digits; empty: unknown

  bool operator==(const StackFrame&) const = default;
};

/// A function of OCaml's runtime that lies between OCaml code and C, and says nothing of the program.
bool is_glue(std::string_view function);

/// Grows with what it is given, up to fixed limits. One thread.
class StackTable {
 public:
  static constexpr std::size_t max_frames = std::size_t{1} << 18, max_stacks = std::size_t{1} << 20;
  static constexpr std::size_t max_text_bytes = std::size_t{64} << 20;
  static constexpr std::size_t max_text = 1024;  ///< bytes of one; longer ones are cut

  StackTable();
  StackTable(StackTable&&) noexcept = default;
  StackTable& operator=(StackTable&&) noexcept = default;

  /// The texts are copied. 0 if there is no room.
  FrameIndex add_frame(const StackFrame& frame);
  /// The stack in which `caller` has called `frame`. If there is no room: the stack unknown().
  StackIndex add_stack(StackIndex caller, FrameIndex frame);
  /// The stack that has only the frame 0.
  static constexpr StackIndex unknown() { return 1; }

  /// A stack that is not known yet: it is unknown() until it is set. unknown() if there is no room.
  StackIndex reserve();
  /// Makes a reserved stack the same as another one.
  void set_reserved(StackIndex reserved, StackIndex same_as);
  bool is_reserved(StackIndex stack) const { return stack < stacks_.size() && stacks_[stack].is_reserved; }

  // From here on, for stacks that do not exist: the empty stack, the frame 0.
  StackIndex caller_of(StackIndex stack) const { return stack < stacks_.size() ? stacks_[stack].caller : 0; }
  FrameIndex frame_of(StackIndex stack) const { return stack < stacks_.size() ? stacks_[stack].frame : 0; }
  /// The texts are valid as long as the table.
  const StackFrame& frame(FrameIndex frame) const { return frames_[frame < frames_.size() ? frame : 0]; }
  /// Calls `visit(index, frame)` for each frame, from the innermost one outwards.
  template <typename Visit>
  void for_each_frame(StackIndex stack, Visit&& visit) const {
    // A caller has a lower number, except in damaged recordings: the number of frames is bounded.
    if (stack >= stacks_.size()) return;
    for (std::size_t depth = 0; stack != 0 && depth < max_depth; ++depth, stack = caller_of(stack))
      visit(frame_of(stack), frame(frame_of(stack)));
  }
  static constexpr std::size_t max_depth = 4096;

  /// The innermost frame that is OCaml's; the innermost one if there is none.
  const StackFrame& innermost_ocaml(StackIndex stack) const;
  /// Of its outermost frame: unknown if it is empty.
  FrameKind outermost(StackIndex stack) const;
  /// False if that is unknown or cut.
  bool is_complete(StackIndex stack) const;

  // For a recording, with the numbers that it has there. False beyond the limits.
  [[nodiscard]] bool restore_frame(FrameIndex index, const StackFrame& frame);
  [[nodiscard]] bool restore_stack(StackIndex index, StackIndex caller, FrameIndex frame);
  /// A stack that is not known yet.
  [[nodiscard]] bool restore_reserved(StackIndex index);

 private:
  struct Stack {
    StackIndex caller = 0;
    FrameIndex frame = 0;
    bool is_reserved = false;
  };
  struct FrameHash {
    std::size_t operator()(const StackFrame& frame) const;
  };
  /// The same text, in this table. Nothing if there is no room.
  bool keep_texts(StackFrame& frame);
  bool keep(std::string_view& text);

  std::vector<StackFrame> frames_;
  std::vector<Stack> stacks_;
  std::unordered_map<StackFrame, FrameIndex, FrameHash> frame_indices_;
  std::unordered_map<std::uint64_t, StackIndex> stack_indices_;  ///< by caller and frame
  std::unordered_set<std::string> texts_;                        ///< nodes do not move
  std::size_t text_bytes_ = 0;
};

}  // namespace rtev
