// SPDX-License-Identifier: MIT
#include <algorithm>
#include <ranges>
#include <vector>

#include "analysis/profile/profile_words.hpp"
#include "base/folding.hpp"

namespace rtev {
namespace {

using Index = CallTree::Index;

/// Deeper lines begin no further to the right.
constexpr std::size_t max_indent = 36;
constexpr std::size_t max_tree_lines = 2000;
constexpr std::uint64_t smallest_share = 100;  ///< 1 in so many

class Tree {
 public:
  Tree(TextBuffer& out, const ProfileReport& report) : out_(out), report_(report), tree_(report.tree) {}

  void path(std::size_t max_lines) {
    std::vector<Index> nodes;
    for (Index node = heaviest(CallTree::root); node != CallTree::root; node = heaviest(node)) {
      nodes.push_back(node);
      // Where it is spread evenly there is no path.
      if (self(node) >= total(node) / 2) break;
    }
    // What starts a program is the same for all.
    const auto first =
        std::ranges::find_if(nodes, [&](Index node) { return tree_.function_of(node).kind == FrameKind::ocaml; });
    if (first != nodes.end()) nodes.erase(nodes.begin(), first);
    // Of what OCaml code calls outside of OCaml the first function says most.
    const auto is_ocaml = [&](Index node) { return tree_.function_of(node).kind == FrameKind::ocaml; };
    const auto last = std::ranges::find_if(nodes | std::views::reverse, is_ocaml).base();
    constexpr std::ptrdiff_t max_inner = 2;
    if (last != nodes.begin() && nodes.end() - last > max_inner) nodes.erase(last + max_inner, nodes.end());
    const std::size_t outer = nodes.size() > max_lines ? nodes.size() - max_lines + 1 : 0;
    if (outer > 0) print(out_, "{:>5}  … {} callers (--full)\n", share(nodes.front()), outer);
    for (const Index node : nodes | std::views::drop(outer)) line(node, 0);
  }

  void whole() {
    struct Step {
      Index node;
      std::size_t indent;
      std::uint64_t small = 0, small_weight = 0;  ///< branches that are left out here; then there is no node
    };
    std::vector<Step> steps;
    const auto push_children = [&](Index node, std::size_t indent) {
      std::vector<Index> shown;
      Step rest{.node = CallTree::root, .indent = indent};
      for (const Index child : tree_.children(node)) {
        const std::uint64_t weight = total(child);
        if (weight == 0) continue;
        if (weight >= whole_weight() / smallest_share) {
          shown.push_back(child);
        } else {
          ++rest.small;
          rest.small_weight += weight;
        }
      }
      std::ranges::sort(shown, [&](Index a, Index b) { return std::pair(total(b), a) < std::pair(total(a), b); });
      // A chain of calls is not indented: most stacks are deeper than a terminal is wide.
      const bool is_chain = shown.size() == 1 && rest.small == 0 && self(node) == 0;
      const std::size_t deeper = is_chain || node == CallTree::root ? indent : std::min(indent + 2, max_indent);
      rest.indent = deeper;
      if (rest.small > 0 && rest.small_weight >= whole_weight() / smallest_share) steps.push_back(rest);
      left_out_ += rest.small;
      for (const Index child : shown | std::views::reverse) steps.push_back({child, deeper});
    };
    push_children(CallTree::root, 0);
    for (std::size_t lines = 0; !steps.empty(); ++lines) {
      const Step step = steps.back();
      steps.pop_back();
      if (lines == max_tree_lines) {
        out_.add("and more lines\n");
        break;
      }
      if (step.small > 0) {
        print(out_, "{:>5}  {:{}}[{} below 1%]\n", Percent{step.small_weight, whole_weight()}, "", step.indent,
              Counted{step.small, "branch", "branches"});
        continue;
      }
      line(step.node, step.indent);
      push_children(step.node, step.indent);
    }
    if (left_out_ > 0) print(out_, "{} below 1% left out\n", Counted{left_out_, "branch", "branches"});
  }

 private:
  std::uint64_t whole_weight() const { return report_.shown(report_.all).weight; }
  std::uint64_t total(Index node) const { return report_.shown(tree_.nodes()[node].total).weight; }
  std::uint64_t self(Index node) const { return report_.shown(tree_.nodes()[node].self).weight; }

  /// Of few samples how many these are.
  std::string share(Index node) const {
    if (report_.has_few()) return fmt::format("{}", Grouped{report_.shown(tree_.nodes()[node].total).samples});
    return fmt::format("{}", Percent{total(node), whole_weight()});
  }

  Index heaviest(Index node) const {
    Index found = CallTree::root;
    for (const Index child : tree_.children(node)) {
      if (total(child) > (found == CallTree::root ? 0 : total(found))) found = child;
    }
    return found;
  }

  void line(Index node, std::size_t indent) {
    constexpr std::size_t before = 7, after = 40, least = 20;
    const std::size_t taken = before + after + indent;
    print(out_, "{:>5}  {:{}}{}\n", share(node), "", indent,
          PlaceName{tree_, tree_.nodes()[node].place, std::max(text_columns(), taken + least) - taken, true});
  }

  TextBuffer& out_;
  const ProfileReport& report_;
  const CallTree& tree_;
  std::uint64_t left_out_ = 0;
};

}  // namespace

void add_hottest_path(TextBuffer& out, const ProfileReport& report, std::size_t max_lines) {
  Tree(out, report).path(max_lines);
}

std::size_t lines_for_path(const TextBuffer& report, std::size_t reserved) {
  constexpr std::size_t screen = 23, least = 3, most = 6;
  const auto used = static_cast<std::size_t>(std::ranges::count(report.text(), '\n')) + reserved;
  return std::clamp(screen - std::min(used, screen), least, most);
}

void add_call_tree(TextBuffer& out, const ProfileReport& report) {
  Tree(out, report).whole();
}

}  // namespace rtev
