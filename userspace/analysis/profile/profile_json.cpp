// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/profile/profile_report.hpp"
#include "analysis/report_json.hpp"
#include "base/text_format.hpp"

namespace rtev {
namespace {

constexpr std::size_t max_json_rows = 1000, max_paths = 100, max_path_frames = 256;

class Json {
 public:
  explicit Json(const ProfileReport& report) : report_(report), tree_(report.tree) {}

  std::string text(std::string_view type) {
    json_.object([&] {
      add_head(json_, type, report_);
      json_.member("kind", to_string(report_.kind));
      json_.member("unit", to_string(report_.unit));
      const SampleValue all = sum_of(report_.all);
      const bool is_unknown = all.samples == 0 && report_.not_recorded.has(EventKind::sample);
      json_.member("samples", known_count(all.samples, is_unknown));
      json_.member("weight", known_count(all.weight, is_unknown));
      json_.member("incomplete", known_count(report_.incomplete, is_unknown));
      json_.member("cut", known_count(report_.cut, is_unknown));
      json_.member("unknown_process", known_count(report_.unknown_process, is_unknown));
      json_.member("dropped", known_count(report_.dropped, report_.truncated));
      json_.member("without_room", report_.without_room);
      if (report_.kind == SampleKind::allocation) {
        allocations();
        rows("sites", report_.lines);
      } else {
        profile();
      }
      rows("functions", report_.functions);
      processes();
      paths();
    });
    return std::string{json_.text()} + '\n';
  }

 private:
  void value(const SampleValue& value) {
    json_.member("samples", value.samples);
    json_.member("weight", value.weight);
  }

  void allocations() {
    const AllocatedMemory& memory = report_.memory;
    json_.member("minor_bytes", memory.minor_bytes);
    json_.member("major_bytes", memory.major_bytes);
    json_.member("domains", memory.domains);
    json_.member("domains_without_counter", memory.domains_without_counter);
    const LargeBlocks& most = report_.large_blocks;
    if (most.place == 0) return;
    json_.key("major_blocks").object([&] {
      place(most.place);
      if (most.caller != 0) json_.key("caller").object([&] { place(most.caller); });
      json_.member("samples", most.samples);
      json_.member("of_samples", most.of_samples);
    });
  }

  void profile() {
    json_.member("by", to_string(report_.by));
    // Stacks say it in part: those that have the runtime's functions.
    const bool is_unknown =
        !report_.has_pauses || report_.not_recorded.lacks_pauses() || report_.not_recorded.has(EventKind::sample);
    json_.key("gc").object([&] {
      json_.member("samples", known_count(report_.gc.samples, is_unknown));
      json_.member("weight", known_count(report_.gc.weight, is_unknown));
    });
    if (report_.in) {
      json_.key("in").object([&] {
        json_.member("pattern", report_.in->pattern);
        json_.member("min_ns", report_.in->min_ns);
        json_.key("inside").object([&] { value(report_.all[static_cast<std::size_t>(SampleSide::inside)]); });
        json_.key("others").object([&] { value(report_.all[static_cast<std::size_t>(SampleSide::others)]); });
        json_.member("undecided", report_.undecided);
        json_.values("other_names", report_.other_names);
      });
    }
    if (report_.by == ProfileBy::line) rows("lines", report_.lines);
    json_.key("groups").array([&] {
      for (const ProfileGroup& group : report_.groups) {
        json_.object([&] {
          json_.member("name", group.name);
          value(group.value);
          json_.key("hottest").object([&] {
            place(group.hottest);
            value(group.in_hottest);
          });
        });
      }
    });
  }

  /// What is unknown has no member.
  void place(CallTree::Index index) {
    const ProfilePlace& place = tree_.places()[index];
    const ProfileFunction& function = tree_.functions()[place.function];
    json_.plain_member("kind", function.is_gc ? std::string_view("gc") : to_string(function.kind));
    if (!function.name.empty()) json_.member("function", function.name);
    if (!function.file.empty()) json_.member("file", function.file);
    if (place.line != 0) json_.member("line", place.line);
    if (!function.object.empty()) json_.member("object", function.object);
    if (function.address != 0) json_.member("address", function.address);
  }

  void rows(std::string_view name, const std::vector<ProfileRow>& rows) {
    json_.key(name).array([&] {
      for (std::size_t i = 0; i < std::min(rows.size(), max_json_rows); ++i) {
        const ProfileRow& row = rows[i];
        json_.object([&] {
          place(row.place);
          json_.key("self").object([&] { value(sum_of(row.self)); });
          json_.key("total").object([&] { value(sum_of(row.total)); });
          if (row.caller != 0) json_.key("caller").object([&] { place(row.caller); });
          if (row.called != 0) json_.key("called").object([&] { place(row.called); });
          if (row.gc.samples > 0) json_.key("gc").object([&] { value(row.gc); });
          if (!report_.in) return;
          json_.key("inside").object([&] { value(row.total[static_cast<std::size_t>(SampleSide::inside)]); });
          json_.key("others").object([&] { value(row.total[static_cast<std::size_t>(SampleSide::others)]); });
        });
      }
    });
  }

  void processes() {
    json_.key("processes").array([&] {
      for (const ProfileProcess& process : report_.processes) {
        if (process.value.samples == 0) continue;
        json_.object([&] {
          json_.member("pid", process.pid);
          json_.member("comm", process.comm);
          value(process.value);
        });
      }
    });
  }

  /// Innermost frame first.
  void paths() {
    std::vector<std::pair<std::uint64_t, CallTree::Index>> order;
    for (CallTree::Index node = 1; node < tree_.nodes().size(); ++node) {
      const SampleValue& self = report_.shown(tree_.nodes()[node].self);
      if (self.samples > 0) order.emplace_back(self.weight, node);
    }
    const std::size_t count = std::min(order.size(), max_paths);
    std::ranges::partial_sort(
        order, order.begin() + static_cast<std::ptrdiff_t>(count),
        [](const auto& a, const auto& b) { return std::pair(b.first, a.second) < std::pair(a.first, b.second); });
    order.resize(count);
    json_.key("paths").array([&] {
      for (const auto& [weight, leaf] : order) {
        json_.object([&] {
          value(report_.shown(tree_.nodes()[leaf].self));
          json_.key("frames").array([&] {
            std::size_t frames = 0;
            for (CallTree::Index node = leaf; node != CallTree::root && frames < max_path_frames;
                 node = tree_.nodes()[node].parent, ++frames)
              json_.object([&] { place(tree_.nodes()[node].place); });
          });
        });
      }
    });
  }

  const ProfileReport& report_;
  const CallTree& tree_;
  JsonWriter json_;
};

}  // namespace

std::string profile_json(const ProfileReport& report) {
  return Json{report}.text("profile");
}

std::string allocs_json(const ProfileReport& report) {
  return Json{report}.text("allocs");
}

}  // namespace rtev
