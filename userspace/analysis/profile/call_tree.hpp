// SPDX-License-Identifier: MIT
// Stacks merged into one tree of calls, from the outermost frame inwards.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/profile/sample_value.hpp"
#include "base/text_buffer.hpp"
#include "stream/stacks.hpp"

namespace rtev {

/// Samples of a comparison: those inside of what was slow, and the others. Without a comparison all are `others`.
enum class SampleSide : std::uint8_t { others, inside };
inline constexpr std::size_t sample_sides = 2;

/// Texts are those of the StackTable: programs choose them, so escape them.
struct ProfileFunction {
  FrameKind kind = FrameKind::unknown;
  bool is_gc = false;         ///< stands for what the runtime does in the GC, by itself
  std::uint64_t address = 0;  ///< of a function without a name; of an anonymous one its line
  std::string_view name{};
  std::string_view file{};
  std::string_view object{};
  std::string_view build_id{};

  bool operator==(const ProfileFunction&) const = default;
};

/// "Web.Server.handle", "[kernel] do_sys_poll", "0x4012", "[GC]". Without control characters.
void append(TextBuffer& out, const ProfileFunction& function);

/// A line of a function.
struct ProfilePlace {
  std::uint32_t function = 0;
  std::uint32_t line = 0;     ///< 0: unknown
  std::uint64_t address = 0;  ///< of the first frame that was there
};

class CallTree {
 public:
  using Index = std::uint32_t;
  static constexpr Index root = 0;

  struct Node {
    Index parent = root;
    Index place = 0;
    Index depth = 0;                                ///< of the root: 0
    std::array<SampleValue, sample_sides> self{};   ///< of stacks that end here
    std::array<SampleValue, sample_sides> total{};  ///< after sum_up()
  };

  /// How the inner frames of a stack are shown.
  enum class Inner : std::uint8_t {
    all,
    gc,          ///< those inside of the innermost OCaml frame are one frame, of the GC
    ocaml_only,  ///< those inside of the innermost OCaml frame are left out
  };

  explicit CallTree(const StackTable& stacks);

  /// The node of a stack's innermost frame. Frames beyond max_depth are left out.
  Index add(StackIndex stack, Inner inner);
  void count(Index node, SampleSide side, const SampleValue& value) {
    nodes_[node].self[static_cast<std::size_t>(side)] += value;
  }
  /// When all are counted.
  void sum_up();

  /// A parent comes before its children; the root is first and has no place.
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<ProfilePlace>& places() const { return places_; }
  const std::vector<ProfileFunction>& functions() const { return functions_; }
  const ProfilePlace& place_of(Index node) const { return places_[nodes_[node].place]; }
  const ProfileFunction& function_of(Index node) const { return functions_[place_of(node).function]; }
  /// The node to whose function a sample is attributed: of one of the GC the caller, if there is one.
  Index attributed(Index node) const {
    return node != root && function_of(node).is_gc && nodes_[node].parent != root ? nodes_[node].parent : node;
  }
  /// The file of a function that looks like one of another file: "one/main.exe", with what tells it from the others.
  /// Empty of all other functions. Any bytes, so escape it. Valid after sum_up().
  std::string_view binary_of(Index place) const { return binaries_[places_[place].function]; }
  /// Those of a node, in the order of their nodes. Valid after sum_up().
  struct Children {
    const Index *first, *last;
    const Index* begin() const { return first; }
    const Index* end() const { return last; }
  };
  Children children(Index node) const {
    return {children_.data() + first_child_[node], children_.data() + first_child_[node + 1]};
  }

  static constexpr Index max_depth = StackTable::max_depth;

 private:
  struct FunctionHash {
    std::size_t operator()(const ProfileFunction& function) const;
  };

  Index node_of(StackIndex stack);
  StackIndex innermost_ocaml(StackIndex stack);
  StackIndex allocating(StackIndex stack) const;
  void tell_apart();
  Index child(Index parent, Index place);
  Index place_of_frame(FrameIndex index);
  Index place(const ProfileFunction& function, std::uint32_t line, std::uint64_t address);
  Index gc_place() { return place({.is_gc = true}, 0, 0); }

  const StackTable& stacks_;
  std::vector<Node> nodes_{1};
  std::vector<ProfilePlace> places_{1};
  std::vector<ProfileFunction> functions_{1};
  std::unordered_map<ProfileFunction, Index, FunctionHash> function_indices_;
  std::unordered_map<std::uint64_t, Index> place_indices_;  ///< by function and line
  std::unordered_map<std::uint64_t, Index> child_indices_;  ///< by parent and place
  std::unordered_map<FrameIndex, Index> frame_places_;
  std::unordered_map<StackIndex, Index> stack_nodes_;
  std::unordered_map<StackIndex, StackIndex>
      ocaml_stacks_;                           ///< the part up to the innermost frame of OCaml or bytecode; 0: none
  std::vector<std::string> binaries_;          ///< by function, after sum_up(): see binary_of()
  std::vector<Index> children_, first_child_;  ///< after sum_up()
};

}  // namespace rtev
