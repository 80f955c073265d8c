// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>
#include <string_view>

#include "analysis/profile/profile_words.hpp"
#include "base/folding.hpp"
#include "base/text_table.hpp"

namespace rtev {
namespace {

constexpr std::size_t max_sites = 10, max_sites_full = 200;
constexpr std::size_t width_full = 60;
struct SiteWidths {
  std::size_t site, line, caller;
};
/// They fit a terminal, also with the file behind the line.
constexpr SiteWidths site_widths{26, 18, 26}, site_widths_with_binary{22, 30, 18};

class AllocsText {
 public:
  explicit AllocsText(const ProfileReport& report) : report_(report), tree_(report.tree) {}

  std::string text() {
    if (sum_of(report_.all).samples == 0) {
      add_no_samples(out_, report_);
    } else {
      sentences();
      out_.add('\n');
      table();
      if (report_.full) {
        out_.add("\nfrom caller to callee:\n");
        add_call_tree(out_, report_);
      }
      out_.add('\n');
      biases();
      add_sample_notes(out_, report_);
    }
    return std::string{out_.text()};
  }

 private:
  void line(std::string_view text) { out_.add(std::string_view(folded(text, 0, 2)), '\n'); }

  void sentences() {
    const SampleValue all = report_.all[0];
    const SampleValue& value = report_.hottest.value[0];
    TextBuffer text;
    if (report_.has_few()) {
      add_few(text, report_);
      text.add(std::string_view(where_hottest(report_)));
    } else {
      print(text, "{} of the allocation in minor heaps is {}", Percent{value.weight, all.weight},
            where_hottest(report_));
    }
    out_.add(std::string_view(folded(text.text(), 0, 0)), '\n');
    text.clear();
    print(text, "{} in {}", Counted{all.samples, "sample", "samples"}, Duration{report_.end_ns - report_.start_ns});
    if (report_.unit == WeightUnit::bytes) print(text, ", from {} of allocation", Size{all.weight});
    if (report_.memory.major_bytes)
      print(text, "; another {} went to the major heap as large blocks, of which no samples are taken",
            Size{*report_.memory.major_bytes});
    large_blocks(text);
    out_.add(std::string_view(folded(text.text(), 0, 0)), '\n');
  }

  void large_blocks(TextBuffer& text) const {
    const LargeBlocks& most = report_.large_blocks;
    if (most.place == 0) return;
    text.add(report_.memory.major_bytes ? std::string_view(": of the CPU time that they took")
                                        : std::string_view("; of the CPU time that large blocks took"));
    print(text, ", most is in {}", PlaceName{.tree = tree_, .place = most.place, .with_binary = true});
    if (most.caller != 0) print(text, ", called from {}", PlaceName{tree_, most.caller});
    print(text, " ({} of {})", Grouped{most.samples}, Counted{most.of_samples, "sample", "samples"});
  }

  void table() {
    TextTable table;
    table.column("SHARE", 5);
    const bool has_bytes = report_.unit == WeightUnit::bytes;
    if (has_bytes) table.column("BYTES", 0);
    table.column("SAMPLES", 0).column("SITE", 0, TextTable::Align::left).column("LINE", 0, TextTable::Align::left);
    table.column("CALLED FROM", 0, TextTable::Align::left);
    const auto& rows = report_.lines;
    const auto located = std::ranges::find_if(rows, [](const ProfileRow& row) { return row.self[0].samples == 0; });
    const auto all = static_cast<std::size_t>(located - rows.begin());
    const std::size_t count = std::min(all, report_.full ? max_sites_full : max_sites);
    const bool has_binary = std::any_of(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count),
                                        [&](const ProfileRow& row) { return !tree_.binary_of(row.place).empty(); });
    const auto [site, line, caller] = has_binary ? site_widths_with_binary : site_widths;
    for (std::size_t i = 0; i < count; ++i) {
      const SampleValue& self = rows[i].self[0];
      table.row();
      table.cell(report_.has_few() ? "-" : fmt::format("{}", Percent{self.weight, report_.all[0].weight}));
      if (has_bytes) table.cell(fmt::format("{}", Size{self.weight}));
      table.cell(self.samples);
      table.cell(function_cell(tree_, rows[i].place, width(site)));
      table.cell(place_cell(tree_, rows[i].place, width(line)));
      if (rows[i].caller != 0)
        table.cell(cut_middle(fmt::format("{}", PlaceName{tree_, rows[i].caller}), width(caller)));
    }
    if (count < all) table.line(fmt::format("and {} more sites", Grouped{all - count}));
    table.write(out_);
  }

  std::size_t width(std::size_t narrow) const { return report_.full ? width_full : narrow; }

  void biases() {
    line(
        "Shares are estimates: if all rounds of a loop allocate alike, one of its sites may be sampled more often than "
        "the others.");
    const AllocatedMemory& memory = report_.memory;
    if (report_.unit != WeightUnit::bytes)
      return line("Without runtime events it is unknown how much each domain allocated: they cannot be compared.");
    if (memory.domains > 1) line("Each domain's samples are scaled to what its counter says that it allocated.");
    if (memory.domains_without_counter > 0)
      line(fmt::format("{} of {} without a counter: estimated", memory.domains_without_counter,
                       Counted{memory.domains, "domain", "domains"}));
  }

  const ProfileReport& report_;
  const CallTree& tree_;
  TextBuffer out_;
};

}  // namespace

std::string allocs_text(const ProfileReport& report) {
  return AllocsText{report}.text();
}

}  // namespace rtev
