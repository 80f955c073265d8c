// SPDX-License-Identifier: MIT
#include "analysis/profile/call_tree.hpp"

#include <fmt/format.h>

#include <functional>
#include <ranges>

#include "base/escape.hpp"
#include "base/inlined_code.hpp"
#include "base/program_names.hpp"
#include "base/text_format.hpp"
#include "stream/shown_names.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t pair_of(std::uint32_t high, std::uint32_t low) {
  return std::uint64_t{high} << 32 | low;
}

}  // namespace

void append(TextBuffer& out, const ProfileFunction& function) {
  if (function.is_gc) return out.add("[GC]");
  switch (function.kind) {
    case FrameKind::unknown:
    case FrameKind::cut:
    case FrameKind::bytecode:
      return out.add('[', to_string(function.kind), ']');
    case FrameKind::kernel:
      out.add("[kernel] ");
      break;
    default:
      break;
  }
  if (!function.name.empty()) return add_escaped(out, function.name);
  out.add(std::string_view(fmt::format("{:#x}", function.address)));
}

std::size_t CallTree::FunctionHash::operator()(const ProfileFunction& function) const {
  constexpr std::hash<std::string_view> text;
  constexpr std::size_t factor = 0x9E3779B97F4A7C15;
  std::size_t hash = (static_cast<std::size_t>(function.kind) << 1 | std::size_t{function.is_gc}) ^ function.address;
  for (const std::string_view part : {function.name, function.file, function.object})
    hash = (hash ^ text(part)) * factor;
  return hash;
}

CallTree::CallTree(const StackTable& stacks) : stacks_(stacks) {}

CallTree::Index CallTree::place(const ProfileFunction& function, std::uint32_t line, std::uint64_t address) {
  const auto [known, is_new] = function_indices_.try_emplace(function, static_cast<Index>(functions_.size()));
  if (is_new) functions_.push_back(function);
  const auto [place, is_new_place] =
      place_indices_.try_emplace(pair_of(known->second, line), static_cast<Index>(places_.size()));
  if (is_new_place) places_.push_back({.function = known->second, .line = line, .address = address});
  return place->second;
}

CallTree::Index CallTree::place_of_frame(FrameIndex index) {
  const auto [known, is_new] = frame_places_.try_emplace(index, 0);
  if (!is_new) return known->second;
  const StackFrame& frame = stacks_.frame(index);
  const bool has_code = frame.kind == FrameKind::ocaml || frame.kind == FrameKind::c || frame.kind == FrameKind::kernel;
  if (!has_code) return known->second = place({.kind = frame.kind}, 0, 0);
  // All anonymous functions of a module have one name, and all inlined code has: their lines tell them apart.
  const bool is_anonymous = frame.function.ends_with(".(fun)") || frame.function == inlined_code;
  return known->second = place({.kind = frame.kind,
                                .address = frame.function.empty() ? frame.address
                                           : is_anonymous         ? frame.line
                                                                  : 0,
                                .name = frame.function,
                                .file = frame.file,
                                .object = frame.object,
                                .build_id = frame.build_id},
                               frame.line, frame.address);
}

CallTree::Index CallTree::child(Index parent, Index place) {
  if (nodes_[parent].depth >= max_depth) return parent;
  const auto [known, is_new] = child_indices_.try_emplace(pair_of(parent, place), static_cast<Index>(nodes_.size()));
  if (is_new) nodes_.push_back({.parent = parent, .place = place, .depth = nodes_[parent].depth + 1});
  return known->second;
}

/// Looks at each stack once. In damaged recordings callers may go round in a circle: the chain is bounded.
CallTree::Index CallTree::node_of(StackIndex stack) {
  std::vector<StackIndex> chain;
  Index node = root;
  for (; stack != 0 && chain.size() < max_depth; stack = stacks_.caller_of(stack)) {
    if (const auto known = stack_nodes_.find(stack); known != stack_nodes_.end()) {
      node = known->second;
      break;
    }
    chain.push_back(stack);
  }
  for (const StackIndex part : chain | std::views::reverse)
    stack_nodes_[part] = node = child(node, place_of_frame(stacks_.frame_of(part)));
  return node;
}

StackIndex CallTree::innermost_ocaml(StackIndex stack) {
  std::vector<StackIndex> passed;
  StackIndex found = 0;
  for (; stack != 0 && passed.size() < max_depth; stack = stacks_.caller_of(stack)) {
    if (const auto known = ocaml_stacks_.find(stack); known != ocaml_stacks_.end()) {
      found = known->second;
      break;
    }
    passed.push_back(stack);
    const FrameKind kind = stacks_.frame(stacks_.frame_of(stack)).kind;
    if (kind != FrameKind::ocaml && kind != FrameKind::bytecode) continue;
    found = stack;
    break;
  }
  for (const StackIndex part : passed) ocaml_stacks_[part] = found;
  return found;
}

CallTree::Index CallTree::add(StackIndex stack, Inner inner) {
  if (stack == 0) stack = StackTable::unknown();
  if (inner == Inner::all) return node_of(stack);
  const StackIndex ocaml = innermost_ocaml(stack);
  if (inner == Inner::ocaml_only) return node_of(ocaml != 0 ? ocaml : allocating(stack));
  return child(ocaml != 0 ? node_of(ocaml) : root, gc_place());
}

/// Without what the runtime does to allocate, which is no place of a program.
StackIndex CallTree::allocating(StackIndex stack) const {
  StackIndex found = stack;
  for (std::size_t depth = 0; stack != 0 && depth < max_depth; ++depth, stack = stacks_.caller_of(stack)) {
    const std::string_view function = stacks_.frame(stacks_.frame_of(stack)).function;
    if (function == "caml_alloc_small_dispatch" || function == "caml_call_gc") found = stacks_.caller_of(stack);
  }
  return found != 0 ? found : StackTable::unknown();
}

/// Two programs may have a function of one name in a file of one name each, as all programs have the standard library.
void CallTree::tell_apart() {
  const auto is_same_file = [](const ProfileFunction& a, const ProfileFunction& b) {
    return a.object == b.object && a.build_id == b.build_id;
  };
  binaries_.assign(functions_.size(), {});
  std::vector<bool> alike(functions_.size());
  std::unordered_map<std::string, Index> by_text;
  ShownNames names;
  std::unordered_map<std::string_view, std::string_view> build_ids;  // by path; empty: it is of several files
  for (Index i = 1; i < functions_.size(); ++i) {
    const ProfileFunction& function = functions_[i];
    if (function.object.empty()) continue;
    names.add({.comm = {}, .exe = function.object});
    std::string_view& build_id = build_ids.try_emplace(function.object, function.build_id).first->second;
    if (build_id != function.build_id) build_id = {};
    const std::string_view shown = file_name_of(function.file.empty() ? function.object : function.file);
    const auto [first, is_new] = by_text.try_emplace(fmt::format("{} {} {}", function, shown, function.address), i);
    if (!is_new && !is_same_file(functions_[first->second], function)) alike[i] = alike[first->second] = true;
  }
  for (Index i = 1; i < functions_.size(); ++i) {
    if (!alike[i]) continue;
    constexpr std::size_t digits = 8;
    const ProfileFunction& function = functions_[i];
    binaries_[i] = names.name_of({.comm = {}, .exe = function.object});
    if (build_ids[function.object].empty() && !function.build_id.empty())
      binaries_[i].append(" ").append(function.build_id.substr(0, digits));
  }
}

void CallTree::sum_up() {
  tell_apart();
  for (Node& node : nodes_) node.total = node.self;
  first_child_.assign(nodes_.size() + 1, 0);
  for (std::size_t i = nodes_.size() - 1; i > 0; --i) {
    const Node& node = nodes_[i];
    for (std::size_t side = 0; side < sample_sides; ++side) nodes_[node.parent].total[side] += node.total[side];
    ++first_child_[node.parent + std::size_t{1}];
  }
  for (std::size_t i = 1; i < first_child_.size(); ++i) first_child_[i] += first_child_[i - 1];
  children_.assign(nodes_.size(), 0);
  std::vector<Index> next(first_child_.begin(), first_child_.end() - 1);
  for (std::size_t i = 1; i < nodes_.size(); ++i) children_[next[nodes_[i].parent]++] = static_cast<Index>(i);
}

}  // namespace rtev
