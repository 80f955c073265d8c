// SPDX-License-Identifier: MIT
#include "formats/profile/flame_tree.hpp"

#include <fmt/format.h>

#include <ranges>
#include <utility>

#include "analysis/profile/profile_words.hpp"
#include "base/escape.hpp"
#include "base/inlined_code.hpp"
#include "base/program_names.hpp"
#include "formats/profile/profile_files.hpp"

namespace rtev {

std::vector<CallTree::Index> hottest_places(const ProfileReport& report) {
  std::vector<CallTree::Index> places(report.tree.functions().size());
  for (const ProfileRow& row : report.functions) places[report.tree.places()[row.place].function] = row.place;
  return places;
}

std::string process_label(const ProfileProcess& process) {
  return process.pid == 0 ? "[unknown process]" : fmt::format("{}", ProcessName{process.comm, process.pid});
}

std::string function_label(const ProfileFunction& function) {
  const bool has_line = !function.name.empty() && function.address != 0;
  if (has_line && function.name == inlined_code)
    return fmt::format("{} {}:{}", function, Escaped{file_name_of(function.file)}, function.address);
  return has_line ? fmt::format("{}:{}", function, function.address) : fmt::format("{}", function);
}

std::string command_of(const ProfileReport& report) {
  return fmt::format("{}", fmt::join(report.command_line, " "));
}

FlameTree::FlameTree(const ProfileReport& report) {
  const std::vector<CallTree::Index> places = hottest_places(report);
  std::size_t bytes = 0;
  for (std::size_t function = 0; function < places.size(); ++function) {
    function_names_.push_back(static_cast<Index>(names_.size()));
    const ProfileFunction& of = report.tree.functions()[function];
    Name name{.text = std::string(left_out_frame), .kind = of.is_gc ? std::string_view("gc") : to_string(of.kind)};
    if (bytes < max_name_bytes) {
      name.text = function_label(of);
      name.place = fmt::format("{}", SourceLine{report.tree, places[function]});
    }
    bytes += name.text.size() + name.place.size();
    names_.push_back(std::move(name));
  }
  for (const ProfileProcess& process : report.processes) {
    process_names_.push_back(static_cast<Index>(names_.size()));
    names_.push_back({.text = process_label(process), .kind = "process"});
  }
  for (const ProfileEntry& entry : report.entries) {
    if (entry.side == report.shown_side()) nodes_[node_of(report, entry)].self += entry.value;
  }
  for (Node& node : nodes_) node.total = node.self;
  for (std::size_t i = nodes_.size() - 1; i > 0; --i) nodes_[nodes_[i].parent].total += nodes_[i].total;
}

FlameTree::Index FlameTree::child(Index parent, Index name) {
  const auto known = children_.find(std::uint64_t{parent} << 32 | name);
  if (known != children_.end()) return known->second;
  if (nodes_.size() >= max_nodes) return parent;
  const auto added = static_cast<Index>(nodes_.size());
  nodes_.push_back({.parent = parent, .name = name});
  children_.emplace(std::uint64_t{parent} << 32 | name, added);
  return added;
}

FlameTree::Index FlameTree::node_of(const ProfileReport& report, const ProfileEntry& entry) {
  std::vector<CallTree::Index> chain;
  Index node = child(root, process_names_[entry.process]);
  const auto key = [&](CallTree::Index at) { return std::uint64_t{entry.process} << 32 | at; };
  for (CallTree::Index at = entry.node; at != CallTree::root; at = report.tree.nodes()[at].parent) {
    if (const auto known = call_nodes_.find(key(at)); known != call_nodes_.end()) {
      node = known->second;
      break;
    }
    chain.push_back(at);
  }
  for (const CallTree::Index at : chain | std::views::reverse) {
    const Index inner = child(node, function_names_[report.tree.place_of(at).function]);
    if (inner == node) return node;
    node = inner;
    call_nodes_.emplace(key(at), node);
  }
  return node;
}

}  // namespace rtev
