// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/profile/profile_report.hpp"
#include "base/enum_names.hpp"
#include "base/text_format.hpp"

namespace rtev {
namespace {

using Index = CallTree::Index;

/// `programs`: how many processes have samples, by program.
std::string entry_name(const ProfileReport& report, const ProfileEntry& entry,
                       const std::map<std::string, std::uint64_t>& programs) {
  const ProfileProcess& process = report.processes[entry.process];
  std::string name = process.pid == 0 ? "unknown process" : fmt::format("{}/{}", process.comm, process.pid);
  switch (report.by) {
    case ProfileBy::program: {
      const std::uint64_t processes = programs.at(process.program);
      return process.pid == 0 || processes == 1 ? name
                                                : fmt::format("{}, {} processes", process.comm, Grouped{processes});
    }
    case ProfileBy::domain:
      return name + (entry.domain < 0 ? ", no domain" : fmt::format(" domain {}", entry.domain));
    case ProfileBy::process:
      return name;
    default:
      return report.labels[entry.label];
  }
}

class Rows {
 public:
  explicit Rows(ProfileReport& report) : report_(report), tree_(report.tree) {}

  void add() {
    const auto& places = tree_.places();
    const auto place_of = [&](Index node) { return tree_.nodes()[node].place; };
    std::vector<ProfileRow> lines = tally(places.size(), place_of);
    report_.functions = tally(tree_.functions().size(), [&](Index node) { return places[place_of(node)].function; });
    // Of a function the line that has most.
    for (Index place = 1; place < lines.size(); ++place) {
      lines[place].place = place;
      Index& best = report_.functions[places[place].function].place;
      if (best == 0 || rank(lines[best]) < rank(lines[place])) best = place;
    }
    sort(report_.functions);
    if (report_.by == ProfileBy::line || report_.kind == SampleKind::allocation) {
      sort(lines);
      if (report_.kind == SampleKind::allocation) add_callers(lines);
      report_.lines = std::move(lines);
    }
    if (report_.kind == SampleKind::off_cpu) add_called();
    add_groups();
    add_hottest();
    if (report_.kind == SampleKind::on_cpu) add_main();
  }

  void add_large_blocks(const LargeBlockNodes& nodes) {
    std::map<std::pair<Index, Index>, std::uint64_t> samples;  // by place and caller
    LargeBlocks& most = report_.large_blocks;
    for (const auto& [node, value] : nodes) {
      const Index caller = caller_of(node), place = tree_.nodes()[node].place;
      samples[{place, caller == CallTree::root ? 0 : tree_.nodes()[caller].place}] += value.samples;
      most.of_samples += value.samples;
    }
    for (const auto& [where, count] : samples) {
      if (count <= most.samples) continue;
      most.samples = count;
      std::tie(most.place, most.caller) = where;
    }
  }

 private:
  std::uint64_t shown(const SampleValues& values) const { return report_.shown(values).weight; }
  std::pair<std::uint64_t, std::uint64_t> rank(const ProfileRow& row) const {
    return {sum_of(row.self).weight, sum_of(row.total).weight};
  }

  /// A row for each key of nodes, keys beginning with 0 for the root.
  template <typename KeyOf>
  std::vector<ProfileRow> tally(std::size_t keys, const KeyOf& key_of) const {
    std::vector<ProfileRow> rows(keys);
    std::vector<std::uint32_t> open(keys);  // how often it is on the way from the root
    struct Step {
      Index node;
      bool leaves;
    };
    std::vector<Step> steps;
    const auto push_children = [&](Index node) {
      for (const Index child : tree_.children(node)) steps.push_back({child, false});
    };
    push_children(CallTree::root);
    while (!steps.empty()) {
      const auto [node, leaves] = steps.back();
      steps.pop_back();
      const std::size_t key = key_of(node);
      if (leaves) {
        --open[key];
        continue;
      }
      const CallTree::Node& values = tree_.nodes()[node];
      ProfileRow& self = rows[key_of(attributed(node))];
      for (std::size_t side = 0; side < sample_sides; ++side) {
        self.self[side] += values.self[side];
        if (open[key] == 0) rows[key].total[side] += values.total[side];
      }
      if (tree_.function_of(node).is_gc) self.gc += sum_of(values.self);
      ++open[key];
      steps.push_back({node, true});
      push_children(node);
    }
    return rows;
  }

  /// How much greater its share is inside than elsewhere.
  double excess(const ProfileRow& row) const {
    const auto share = [&](SampleSide side) {
      const auto index = static_cast<std::size_t>(side);
      const auto whole = static_cast<double>(report_.all[index].weight);
      return whole == 0 ? 0.0 : static_cast<double>(row.total[index].weight) / whole;
    };
    return share(SampleSide::inside) - share(SampleSide::others);
  }

  void sort(std::vector<ProfileRow>& rows) const {
    std::erase_if(rows, [](const ProfileRow& row) { return sum_of(row.total).samples == 0 || row.place == 0; });
    // A chain of calls has nearly the same share inside: first what runs, then OCaml's functions, for what starts a
    // program is above all of them.
    const auto difference = [&](const ProfileRow& row) { return report_.in ? std::lround(100 * excess(row)) : 0; };
    const auto rank = [&](const ProfileRow& row) {
      const bool is_ocaml = tree_.functions()[tree_.places()[row.place].function].kind == FrameKind::ocaml;
      return std::tuple(difference(row), shown(row.self), is_ocaml, shown(row.total));
    };
    std::ranges::sort(rows, [&](const ProfileRow& a, const ProfileRow& b) {
      // Of a chain of calls the innermost first.
      if (report_.in) return std::pair(rank(b), b.place) < std::pair(rank(a), a.place);
      return std::pair(rank(b), a.place) < std::pair(rank(a), b.place);
    });
  }

  void add_callers(std::vector<ProfileRow>& lines) const {
    std::map<Index, std::map<Index, SampleValue>> callers;  // by place
    for (Index node = 1; node < tree_.nodes().size(); ++node) {
      const SampleValue& value = report_.shown(tree_.nodes()[node].self);
      if (value.samples == 0) continue;
      if (const Index caller = caller_of(node); caller != CallTree::root)
        callers[tree_.nodes()[node].place][tree_.nodes()[caller].place] += value;
    }
    for (ProfileRow& line : lines) {
      if (const auto found = callers.find(line.place); found != callers.end()) line.caller = greatest(found->second);
    }
  }

  void add_groups() {
    if (report_.by == ProfileBy::function || report_.by == ProfileBy::line) return;
    struct Group {
      SampleValue value{};
      std::map<Index, SampleValue> functions{};
    };
    std::map<std::string, std::uint64_t> programs;
    for (const ProfileProcess& process : report_.processes) ++programs[process.program];
    const bool is_by_program = report_.by == ProfileBy::program;
    std::map<std::pair<std::string, std::string>, Group> groups;  // two programs may have one name
    for (const ProfileEntry& entry : report_.entries) {
      Group& group = groups[{entry_name(report_, entry, programs),
                             is_by_program ? report_.processes[entry.process].program : std::string()}];
      group.value += entry.value;
      if (const Index node = attributed(entry.node); node != CallTree::root)
        group.functions[tree_.place_of(node).function] += entry.value;
    }
    std::map<Index, Index> places;  // by function
    for (const ProfileRow& row : report_.functions) places[tree_.places()[row.place].function] = row.place;
    for (auto& [key, group] : groups) {
      ProfileGroup added{.name = key.first, .value = group.value};
      for (const auto& [function, value] : group.functions) {
        if (value.weight <= added.in_hottest.weight && added.hottest != 0) continue;
        added.hottest = places[function];
        added.in_hottest = value;
      }
      report_.groups.push_back(std::move(added));
    }
    std::ranges::stable_sort(report_.groups, [](const ProfileGroup& a, const ProfileGroup& b) {
      return std::pair(b.value.weight, b.value.samples) < std::pair(a.value.weight, a.value.samples);
    });
  }

  /// The node to whose function a sample counts. Threads sleep in the C library: what matters is what had them sleep.
  /// On a CPU the kernel works for the function that called it.
  Index attributed(Index node) const {
    if (report_.kind == SampleKind::off_cpu) return ocaml_[node];
    Index user = tree_.attributed(node);
    while (user != CallTree::root && tree_.function_of(user).kind == FrameKind::kernel)
      user = tree_.nodes()[user].parent;
    return user == CallTree::root ? node : user;
  }

  /// The innermost OCaml node around a node; itself if there is none.
  std::vector<Index> ocaml_nodes() const {
    std::vector<Index> found(tree_.nodes().size());
    for (Index node = 1; node < found.size(); ++node) {
      const Index outer = found[tree_.nodes()[node].parent];
      found[node] = tree_.function_of(node).kind == FrameKind::ocaml || outer == CallTree::root ||
                            tree_.function_of(outer).kind != FrameKind::ocaml
                        ? node
                        : outer;
    }
    return found;
  }

  /// The outermost function in C that the innermost OCaml function has called. Where that has no name, the node itself.
  std::vector<Index> called_nodes() const {
    std::vector<Index> found(tree_.nodes().size());
    for (Index node = 1; node < found.size(); ++node) {
      const Index parent = tree_.nodes()[node].parent;
      const auto is_named = [&](Index candidate) {
        const ProfileFunction& function = tree_.function_of(candidate);
        return candidate != ocaml_[candidate] && function.kind == FrameKind::c && !function.name.empty() &&
               !is_glue(function.name);
      };
      const bool is_inside = parent != CallTree::root && ocaml_[node] == ocaml_[parent] && is_named(found[parent]);
      found[node] = is_inside ? found[parent] : node;
    }
    return found;
  }

  void add_called() const {
    std::map<Index, std::map<Index, SampleValue>> called;  // by function
    for (Index node = 1; node < ocaml_.size(); ++node) {
      const SampleValue& value = report_.shown(tree_.nodes()[node].self);
      if (value.samples > 0 && called_[node] != ocaml_[node])
        called[tree_.place_of(ocaml_[node]).function][tree_.nodes()[called_[node]].place] += value;
    }
    for (ProfileRow& row : report_.functions) {
      const auto found = called.find(tree_.places()[row.place].function);
      if (found != called.end()) row.called = greatest(found->second);
    }
  }

  static Index greatest(const std::map<Index, SampleValue>& values) {
    Index found = 0;
    std::uint64_t most = 0;
    for (const auto& [index, value] : values) {
      if (found != 0 && value.weight <= most) continue;
      found = index;
      most = value.weight;
    }
    return found;
  }

  void add_hottest() {
    const std::vector<Index>& ocaml = ocaml_;
    std::map<Index, SampleValues> functions;
    for (Index node = 1; node < ocaml.size(); ++node) {
      SampleValues& values = functions[tree_.place_of(ocaml[node]).function];
      for (std::size_t side = 0; side < sample_sides; ++side) values[side] += tree_.nodes()[node].self[side];
    }
    ProfileHottest& hottest = report_.hottest;
    Index function = 0;
    for (const auto& [index, values] : functions) {
      if (function != 0 && shown(values) <= shown(hottest.value)) continue;
      function = index;
      hottest.value = values;
    }
    if (function == 0 || report_.shown(hottest.value).samples == 0) return;
    std::map<Index, SampleValue> at, inner, callers;
    for (Index node = 1; node < ocaml.size(); ++node) {
      const SampleValue& value = report_.shown(tree_.nodes()[node].self);
      if (value.samples == 0 || tree_.place_of(ocaml[node]).function != function) continue;
      at[tree_.nodes()[ocaml[node]].place] += value;
      inner[node == ocaml[node] ? 0 : tree_.nodes()[called_[node]].place] += value;
      if (const Index caller = caller_of(ocaml[node]); caller != CallTree::root)
        callers[tree_.nodes()[caller].place] += value;
    }
    hottest.place = greatest(at);
    hottest.at_place = at[hottest.place];
    const std::uint64_t half = shown(hottest.value) / 2;
    if (const Index place = greatest(inner); place != 0 && inner[place].weight >= half) hottest.inner = place;
    if (const Index place = greatest(callers); place != 0) {
      hottest.caller = place;
      hottest.in_caller = callers[place];
    }
  }

  void add_main() {
    struct Function {
      std::uint64_t total = 0;
      std::map<Index, std::uint64_t> called{};  ///< by function
      std::map<Index, std::uint64_t> places{}, callers{};
    };
    std::map<Index, Function> functions;
    for_each_outermost([&](Index node, Index outer) {
      const std::uint64_t weight = report_.shown(tree_.nodes()[node].total).weight;
      const Index name = tree_.place_of(node).function;
      Function& function = functions[name];
      function.total += weight;
      function.places[tree_.nodes()[node].place] += weight;
      if (outer != CallTree::root) functions[tree_.place_of(outer).function].called[name] += weight;
      if (const Index caller = caller_of(node); caller != CallTree::root)
        function.callers[tree_.nodes()[caller].place] += weight;
    });
    const auto most = [](const std::map<Index, std::uint64_t>& weights) {
      return std::ranges::max_element(weights, {}, [](const auto& entry) { return entry.second; });
    };
    Index main = 0;
    for (const auto& [name, function] : functions) {
      const std::uint64_t handed_on = function.called.empty() ? 0 : most(function.called)->second;
      const bool is_wrapper = handed_on >= function.total - function.total / 10;
      if (is_wrapper || is_glue(tree_.functions()[name].name)) continue;
      if (main == 0 || function.total > functions[main].total) main = name;
    }
    if (main == 0) return;
    const Function& found = functions[main];
    report_.main.place = most(found.places)->first;
    report_.main.total.weight = found.total;
    if (!found.callers.empty()) report_.main.caller = most(found.callers)->first;
  }

  /// Calls visit(node, outer) for each node of an OCaml function that is not on its stack further out, with the
  /// innermost OCaml node around it.
  template <typename Visitor>
  void for_each_outermost(const Visitor& visit) const {
    std::vector<std::uint32_t> open(tree_.functions().size());
    struct Step {
      Index node;
      Index outer;
      bool leaves;
    };
    std::vector<Step> steps;
    const auto push_children = [&](Index node, Index outer) {
      for (const Index child : tree_.children(node)) steps.push_back({child, outer, false});
    };
    push_children(CallTree::root, CallTree::root);
    while (!steps.empty()) {
      const auto [node, outer, leaves] = steps.back();
      steps.pop_back();
      const Index function = tree_.place_of(node).function;
      const bool is_ocaml = tree_.functions()[function].kind == FrameKind::ocaml;
      if (leaves) {
        --open[function];
        continue;
      }
      if (is_ocaml && open[function] == 0) visit(node, outer);
      if (is_ocaml) {
        ++open[function];
        steps.push_back({node, outer, true});
      }
      push_children(node, is_ocaml ? node : outer);
    }
  }

  /// The OCaml function that calls it, if that is near: not itself, and not what the standard library hands on.
  Index caller_of(Index node) const {
    constexpr int max_steps = 64;
    const Index function = tree_.place_of(node).function;
    Index caller = tree_.nodes()[node].parent;
    for (int step = 0; step < max_steps && caller != CallTree::root; ++step, caller = tree_.nodes()[caller].parent) {
      const ProfileFunction& candidate = tree_.function_of(caller);
      if (candidate.kind == FrameKind::ocaml && tree_.place_of(caller).function != function &&
          !candidate.name.starts_with("Stdlib.") && !is_glue(candidate.name))
        return caller;
    }
    return CallTree::root;
  }

  ProfileReport& report_;
  const CallTree& tree_;
  const std::vector<Index> ocaml_ = ocaml_nodes(), called_ = called_nodes();
};

}  // namespace

std::string_view to_string(ProfileBy by) {
  static constexpr std::string_view names[]{"function", "line",     "domain",   "process",
                                            "program",  "gc-phase", "user-span"};
  return name_at(names, by);
}

std::string_view to_string(WeightUnit unit) {
  static constexpr std::string_view names[]{"ns", "bytes", "samples"};
  return name_at(names, unit);
}

void add_rows(ProfileReport& report, const LargeBlockNodes& large_blocks) {
  Rows rows(report);
  rows.add();
  rows.add_large_blocks(large_blocks);
}

}  // namespace rtev
