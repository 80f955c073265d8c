// SPDX-License-Identifier: MIT
// The phases inside one pause, folded into a tree.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rtev {

/// Each path of phases once, with its count and time: a pause may hold thousands of slices of the same kind. A late
/// event counts as of the present. Memory is bounded: a phase without room is only counted, and its time stays with the
/// phase around it.
class PhaseTree {
 public:
  static constexpr std::size_t max_nodes = 96;
  static constexpr std::uint32_t no_parent = 0xffff'ffff;

  struct Node {
    std::uint16_t phase;   ///< id in its process's family
    std::uint16_t depth;   ///< 0: outermost
    std::uint32_t parent;  ///< index, or no_parent; before its children
    std::uint64_t count;
    std::uint64_t total_ns;
    std::uint64_t own_ns;  ///< without the phases inside
  };

  explicit PhaseTree(std::size_t max = max_nodes) : max_(max) {}

  void begin(std::uint16_t phase, std::uint64_t time_ns);
  /// Ends the innermost phase.
  void end(std::uint64_t time_ns);

  /// In the order of their first begin.
  std::span<const Node> nodes() const { return nodes_; }
  /// The same as a tree is written down: each before its children.
  std::vector<const Node*> in_depth() const;
  /// Phases that there was no room for.
  std::uint64_t folded() const { return folded_; }

 private:
  static constexpr std::uint32_t no_node = no_parent;
  struct Open {
    std::uint32_t node;  ///< or no_node
    std::uint64_t begin_ns;
    std::uint64_t inside_ns;  ///< of phases inside that have nodes
  };

  /// Time does not go back.
  std::uint64_t advance(std::uint64_t time_ns) { return now_ns_ = std::max(now_ns_, time_ns); }
  std::uint32_t node_for(std::uint16_t phase);
  void add_subtree(std::uint32_t parent, std::vector<const Node*>& out) const;

  std::size_t max_;
  std::vector<Node> nodes_;
  std::vector<Open> open_;  ///< innermost last
  std::uint64_t folded_ = 0;
  std::uint64_t now_ns_ = 0;
};

}  // namespace rtev
