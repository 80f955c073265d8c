// SPDX-License-Identifier: MIT
// A call tree by functions instead of lines, below the process: what flame graphs show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/profile/profile_report.hpp"

namespace rtev {

class FlameTree {
 public:
  using Index = std::uint32_t;
  static constexpr Index root = 0;
  static constexpr std::size_t max_nodes = std::size_t{1} << 20;
  /// Of the names of all functions in a file; those beyond it have none.
  static constexpr std::size_t max_name_bytes = std::size_t{64} << 20;

  struct Node {
    Index parent = root;
    Index name = 0;
    SampleValue self{}, total{};
  };
  /// Of a function, or of a process. Escaped, valid UTF-8.
  struct Name {
    std::string text{};
    std::string place{};      ///< "upload.ml:42" where most of its samples are
    std::string_view kind{};  ///< "process", "gc", or a FrameKind
  };

  explicit FlameTree(const ProfileReport& report);

  /// A parent comes before its children; the root is first and has no name.
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Name>& names() const { return names_; }
  /// The name of a function of the report.
  Index name_of_function(std::size_t function) const { return function_names_[function]; }

 private:
  Index node_of(const ProfileReport& report, const ProfileEntry& entry);
  Index child(Index parent, Index name);

  std::vector<Node> nodes_{1};
  std::vector<Name> names_{1};
  std::vector<Index> function_names_, process_names_;
  std::unordered_map<std::uint64_t, Index> children_;    ///< by parent and name
  std::unordered_map<std::uint64_t, Index> call_nodes_;  ///< by process and node of the report's tree
};

/// For each function of the report's tree, the place where most of its samples are.
std::vector<CallTree::Index> hottest_places(const ProfileReport& report);
/// "server/4242", escaped.
std::string process_label(const ProfileProcess& process);
/// A function in formats that merge by name: anonymous ones with their line, "Shop.(fun):12",
/// inlined code with its file, too. Escaped.
std::string function_label(const ProfileFunction& function);
/// What was called to trace; empty if it is unknown.
std::string command_of(const ProfileReport& report);

}  // namespace rtev
