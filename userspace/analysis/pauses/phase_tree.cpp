// SPDX-License-Identifier: MIT
#include "analysis/pauses/phase_tree.hpp"

namespace rtev {

void PhaseTree::begin(std::uint16_t phase, std::uint64_t time_ns) {
  const std::uint32_t node = node_for(phase);
  if (node == no_node) {
    ++folded_;
  } else {
    ++nodes_[node].count;
  }
  open_.push_back({.node = node, .begin_ns = advance(time_ns), .inside_ns = 0});
}

void PhaseTree::end(std::uint64_t time_ns) {
  if (open_.empty()) return;
  const Open ended = open_.back();
  open_.pop_back();
  const std::uint64_t total = advance(time_ns) - ended.begin_ns;
  if (ended.node == no_node) return;
  nodes_[ended.node].total_ns += total;
  nodes_[ended.node].own_ns += total - ended.inside_ns;
  if (!open_.empty()) open_.back().inside_ns += total;
}

std::vector<const PhaseTree::Node*> PhaseTree::in_depth() const {
  std::vector<const Node*> out;
  out.reserve(nodes_.size());
  add_subtree(no_parent, out);
  return out;
}

std::uint32_t PhaseTree::node_for(std::uint16_t phase) {
  // A phase inside one without a node has no place of its own either: it would lose its path.
  if (!open_.empty() && open_.back().node == no_node) return no_node;
  const std::uint32_t parent = open_.empty() ? no_parent : open_.back().node;
  // Behind its parent: no_parent + 1 is 0.
  for (std::uint32_t i = parent + 1; i < nodes_.size(); ++i) {
    if (nodes_[i].parent == parent && nodes_[i].phase == phase) return i;
  }
  if (nodes_.size() >= max_) return no_node;
  nodes_.push_back({.phase = phase,
                    .depth = static_cast<std::uint16_t>(open_.size()),
                    .parent = parent,
                    .count = 0,
                    .total_ns = 0,
                    .own_ns = 0});
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

void PhaseTree::add_subtree(std::uint32_t parent, std::vector<const Node*>& out) const {
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].parent != parent) continue;
    out.push_back(&nodes_[i]);
    add_subtree(i, out);
  }
}

}  // namespace rtev
