// SPDX-License-Identifier: MIT
#include <map>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.hpp"
#include "base/text_format.hpp"
#include "formats/profile/flame_tree.hpp"
#include "formats/profile/profile_files.hpp"

namespace rtev {
namespace {

std::string_view unit_of(WeightUnit unit) {
  switch (unit) {
    case WeightUnit::ns:
      return "nanoseconds";
    case WeightUnit::bytes:
      return "bytes";
    case WeightUnit::samples:
      break;
  }
  return "none";
}

class Speedscope {
 public:
  explicit Speedscope(const ProfileReport& report) : report_(report), tree_(report.tree) {}

  std::string text() {
    json_.object([&] {
      json_.member("$schema", std::string_view("https://www.speedscope.app/file-format-schema.json"));
      json_.member("exporter", std::string_view("rtev-bpf " + report_.version));
      json_.member("name", fmt::format("{} samples", to_string(report_.kind)));
      json_.member("activeProfileIndex", 0);
      json_.key("shared").object([&] { json_.key("frames").array([&] { frames(); }); });
      json_.key("profiles").array([&] { profiles(); });
    });
    return std::string(json_.text()) + '\n';
  }

 private:
  /// By their functions. The first one, which no stack has otherwise, is for what does not fit.
  void frames() {
    const std::vector<CallTree::Index> places = hottest_places(report_);
    for (std::size_t function = 0; function < places.size(); ++function) {
      json_.object([&] {
        const ProfileFunction& of = tree_.functions()[function];
        const bool has_room = function != 0 && json_.text().size() < FlameTree::max_name_bytes;
        json_.member("name", has_room ? fmt::format("{}", of) : std::string(left_out_frame));
        if (!has_room) return;
        if (!of.file.empty()) json_.member("file", of.file);
        if (const std::uint32_t line = tree_.places()[places[function]].line; line != 0) json_.member("line", line);
      });
    }
  }

  /// One for each domain, as one would look at threads.
  void profiles() {
    std::map<std::pair<std::uint32_t, std::int32_t>, std::vector<const ProfileEntry*>> domains;
    for (const ProfileEntry& entry : report_.entries) {
      if (entry.side == report_.shown_side()) domains[{entry.process, entry.domain}].push_back(&entry);
    }
    for (const auto& [domain, entries] : domains) {
      const std::string process = process_label(report_.processes[domain.first]);
      profile(domain.second < 0 ? process : fmt::format("{} domain {}", process, domain.second), entries);
    }
    if (domains.empty()) profile("no samples", {});
  }

  void profile(const std::string& name, const std::vector<const ProfileEntry*>& entries) {
    json_.object([&] {
      json_.member("type", std::string_view("sampled"));
      json_.member("name", std::string_view(name));
      json_.member("unit", unit_of(report_.unit));
      json_.member("startValue", 0);
      SampleValue all;
      for (const ProfileEntry* const entry : entries) all += entry->value;
      json_.member("endValue", all.weight);
      json_.key("samples").array([&] {
        for (const ProfileEntry* const entry : entries) json_.array([&] { stack(entry->node); });
      });
      json_.key("weights").array([&] {
        for (const ProfileEntry* const entry : entries) json_.value(entry->value.weight);
      });
    });
  }

  /// Outermost frame first.
  void stack(CallTree::Index leaf) {
    path_.clear();
    for (CallTree::Index node = leaf; node != CallTree::root; node = tree_.nodes()[node].parent) path_.push_back(node);
    written_ += path_.size();
    if (written_ > max_file_frames) return json_.value(0);
    for (const CallTree::Index node : path_ | std::views::reverse) json_.value(tree_.place_of(node).function);
  }

  const ProfileReport& report_;
  const CallTree& tree_;
  std::vector<CallTree::Index> path_;
  std::size_t written_ = 0;
  JsonWriter json_;
};

}  // namespace

std::string speedscope_profile(const ProfileReport& report) {
  return Speedscope(report).text();
}

}  // namespace rtev
