// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/profile/profile_words.hpp"
#include "base/escape.hpp"
#include "base/html_text.hpp"
#include "base/json_writer.hpp"
#include "base/utc_time.hpp"
#include "formats/profile/flame_tree.hpp"
#include "formats/profile/profile_files.hpp"
#include "web/embedded_files.hpp"

namespace rtev {
namespace {

/// More cannot be seen.
constexpr std::size_t max_shown_nodes = 100'000, max_functions = 200;
/// In HTML.
constexpr std::size_t max_plain_functions = 10;

/// JSON in a script element: it must not end the element.
std::string html_json(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

class FlameGraph {
 public:
  FlameGraph(const ProfileReport& report, std::size_t max_nodes)
      : report_(report), max_nodes_(max_nodes), tree_(report) {}

  std::string title_text() const {
    static constexpr std::array<std::string_view, 3> what{"CPU time", "time off CPU", "allocations"};
    const ProfileProcess* most = nullptr;
    for (const ProfileProcess& process : report_.processes) {
      if (process.pid != 0 && (!most || process.value.weight > most->value.weight)) most = &process;
    }
    const std::string of = most ? " of " + process_label(*most) : std::string();
    const std::string in = report_.in ? fmt::format(" in {}", Quoted{report_.in->pattern}) : std::string();
    const auto named = std::ranges::count_if(report_.processes, [](const ProfileProcess& one) { return one.pid != 0; });
    return fmt::format("{}{}{}{}", what[static_cast<std::size_t>(report_.kind)], of, named > 1 ? " and others" : "",
                       in);
  }

  std::string json() {
    JsonWriter json;
    static constexpr std::array<std::string_view, 8> kinds{"unknown", "cut", "ocaml",    "c",
                                                           "kernel",  "gc",  "bytecode", "process"};
    const auto kind_index = [](std::string_view kind) { return std::ranges::find(kinds, kind) - kinds.begin(); };
    json.object([&] {
      json.member("title", std::string_view(title_text()));
      json.member("sentence", std::string_view(sentence()));
      json.member("unit", to_string(report_.unit));
      json.values("kinds", kinds);
      json.key("names").array([&] {
        for (const FlameTree::Name& name : tree_.names()) {
          json.array([&] {
            json.value(std::string_view(name.text));
            json.value(std::string_view(name.place));
            json.value(kind_index(name.kind));
          });
        }
      });
      json.key("nodes").array([&] { nodes(json); });
      json.key("functions").array([&] { functions(json); });
    });
    return std::string(json.text());
  }

  std::string sentence() const {
    const SampleValue& all = report_.shown(report_.all);
    if (all.samples == 0) return "no samples";
    TextBuffer text;
    if (report_.has_few()) {
      add_few(text, report_);
    } else {
      print(text, "{} is ", Percent{report_.shown(report_.hottest.value).weight, all.weight});
    }
    print(text, "{}. {} in {} stand for {}.", where_hottest(report_), Counted{all.samples, "sample", "samples"},
          Duration{report_.end_ns - report_.start_ns}, Weight{report_.unit, all.weight});
    return std::string(text.text());
  }

  /// Which run it is of, as far as that is known: files of several runs look alike.
  std::string run() const {
    std::string text;
    if (report_.run_realtime_ns != 0) {
      UtcTime utc;
      utc.set_origin(report_.run_ns, report_.run_realtime_ns);
      std::array<char, UtcTime::length> time{};
      constexpr std::size_t seconds = 19;
      text = std::string(utc.put(time, report_.start_ns).substr(0, seconds)) + "Z";
    }
    for (const std::string& part : {report_.host, command_of(report_)})
      if (!part.empty()) text += (text.empty() ? "" : ", ") + escaped(part);
    return text;
  }

  /// What is there without scripts: the functions with most weight of their own.
  std::string plain_functions() const {
    const std::uint64_t whole = report_.shown(report_.all).weight;
    std::string rows;
    for (const ProfileRow& row : report_.functions | std::views::take(max_plain_functions)) {
      const FlameTree::Name& name = name_of(row);
      const SampleValue &self = report_.shown(row.self), &total = report_.shown(row.total);
      if (self.samples == 0) continue;
      rows += fmt::format("<tr><td>{}<td>{}<td>{}<td>{}<td>{}</tr>\n", Percent{self.weight, whole},
                          Percent{total.weight, whole}, self.samples, html_text(name.text), html_text(name.place));
    }
    // Not in <noscript>: where a policy or a mail program forbids scripts, that is not shown.
    if (!rows.empty())
      rows = "<div class=\"flame-table\"><table>\n<tr><th>self<th>total<th>samples<th>function<th>place</tr>\n" + rows +
             "</table></div>\n";
    return rows +
           "<p>The flame graph follows where the page may run its script. It loads nothing from elsewhere.</p>\n";
  }

 private:
  const FlameTree::Name& name_of(const ProfileRow& row) const {
    return tree_.names()[tree_.name_of_function(report_.tree.places()[row.place].function)];
  }

  /// Without what is too narrow to be seen.
  void nodes(JsonWriter& json) const {
    const auto& all = tree_.nodes();
    std::vector<std::uint64_t> weights;
    weights.reserve(all.size());
    for (const FlameTree::Node& node : all) weights.push_back(node.total.weight);
    std::optional<std::uint64_t> too_little;
    if (weights.size() > max_nodes_) {
      const auto nth = weights.begin() + static_cast<std::ptrdiff_t>(max_nodes_);
      std::ranges::nth_element(weights, nth, std::greater<>());
      too_little = *nth;
    }
    std::vector<FlameTree::Index> shown(all.size());
    FlameTree::Index count = 0;
    for (FlameTree::Index i = 0; i < all.size(); ++i) {
      // A node has at least the weight of each of its children: no child is shown without its parent.
      if (i != FlameTree::root && too_little && all[i].total.weight <= *too_little) continue;
      shown[i] = count++;
      json.value(shown[all[i].parent]);
      json.value(all[i].name);
      json.value(all[i].total.weight);
      json.value(all[i].total.samples);
    }
  }

  void functions(JsonWriter& json) const {
    for (std::size_t i = 0; i < std::min(report_.functions.size(), max_functions); ++i) {
      const ProfileRow& row = report_.functions[i];
      json.array([&] {
        json.value(tree_.name_of_function(report_.tree.places()[row.place].function));
        json.value(report_.shown(row.self).weight);
        json.value(report_.shown(row.total).weight);
        json.value(report_.shown(row.self).samples);
      });
    }
  }

  const ProfileReport& report_;
  std::size_t max_nodes_;
  FlameTree tree_;
};

}  // namespace

std::string flame_graph_json(const ProfileReport& report, std::size_t max_nodes) {
  return FlameGraph(report, max_nodes).json();
}

std::string flame_graph_html(const ProfileReport& report) {
  FlameGraph graph(report, max_shown_nodes);
  std::string html;
  std::string_view rest = web::flame_graph_page.text;
  const std::string title = html_text(graph.title_text()), sentence = html_text(graph.sentence()),
                    run = html_text(graph.run()), functions = graph.plain_functions(), json = html_json(graph.json());
  for (const std::string_view part :
       {std::string_view(title), web::flame_graph_style.text, std::string_view(title), std::string_view(sentence),
        std::string_view(run), std::string_view(functions), std::string_view(json), web::flame_graph_script.text}) {
    const std::size_t at = rest.find(web::placeholder);
    html += rest.substr(0, at);
    html += part;
    rest.remove_prefix(at + web::placeholder.size());
  }
  html += rest;
  return html;
}

}  // namespace rtev
