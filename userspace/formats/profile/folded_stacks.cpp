// SPDX-License-Identifier: MIT
#include <algorithm>
#include <ranges>
#include <string>
#include <vector>

#include "base/text_buffer.hpp"
#include "formats/profile/flame_tree.hpp"
#include "formats/profile/profile_files.hpp"

namespace rtev {
namespace {

constexpr std::size_t max_bytes = std::size_t{64} << 20;

/// On a CPU samples, as perf's scripts have it; of sleeps microseconds; of allocations bytes.
std::uint64_t number_of(const ProfileReport& report, const SampleValue& value) {
  constexpr std::uint64_t ns_in_us = 1000;
  if (report.kind == SampleKind::on_cpu) return value.samples;
  return report.unit == WeightUnit::ns ? value.weight / ns_in_us : value.weight;
}

}  // namespace

std::string folded_stacks(const ProfileReport& report) {
  const FlameTree tree(report);
  std::vector<std::string> names;
  names.reserve(tree.names().size());
  for (const FlameTree::Name& name : tree.names()) {
    // A semicolon would end a name.
    names.push_back(name.text);
    std::ranges::replace(names.back(), ';', ',');
  }
  std::vector<FlameTree::Index> leaves;
  for (FlameTree::Index node = 1; node < tree.nodes().size(); ++node) {
    if (number_of(report, tree.nodes()[node].self) > 0) leaves.push_back(node);
  }
  std::ranges::stable_sort(leaves, [&](FlameTree::Index a, FlameTree::Index b) {
    return tree.nodes()[b].self.weight < tree.nodes()[a].self.weight;
  });
  TextBuffer out;
  std::vector<FlameTree::Index> path;
  std::uint64_t left_out = 0;
  for (const FlameTree::Index leaf : leaves) {
    const std::uint64_t number = number_of(report, tree.nodes()[leaf].self);
    if (left_out > 0) {
      left_out += number;
      continue;
    }
    path.clear();
    std::size_t bytes = 0;
    for (FlameTree::Index node = leaf; node != FlameTree::root; node = tree.nodes()[node].parent) {
      path.push_back(node);
      bytes += names[tree.nodes()[node].name].size() + 1;
    }
    if (bytes > max_bytes - std::min(out.size(), max_bytes)) {
      left_out += number;
      continue;
    }
    for (const FlameTree::Index node : path | std::views::reverse)
      out.add(node == path.back() ? std::string_view() : std::string_view(";"),
              std::string_view(names[tree.nodes()[node].name]));
    out.add(' ', number, '\n');
  }
  if (left_out > 0) out.add(left_out_frame, ' ', left_out, '\n');
  return std::string(out.text());
}

}  // namespace rtev
