// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "analysis/report_text.hpp"
#include "analysis/utilization/utilization_report.hpp"
#include "base/text_table.hpp"

namespace rtev {
namespace {

/// "48.2%". Rounded down: less than all must not look like all.
std::string percent(double share) {
  return fmt::format("{:.1f}%", std::floor(share * 1000) / 10);
}

/// "10ms".
std::string length_text(std::uint64_t ns) {
  constexpr std::uint64_t ms = 1'000'000, s = 1'000'000'000;
  return ns < s ? fmt::format("{}ms", ns / ms) : fmt::format("{}s", ns / s);
}

}  // namespace

void add_utilization_line(TextBuffer& out, const std::vector<WindowUtilization>& windows) {
  constexpr std::array<std::uint64_t, 3> shown_ns{10'000'000, 100'000'000, 1'000'000'000};
  std::string_view separator = "MMU: pauses left the program ";
  TextBuffer line;
  for (const WindowUtilization& window : windows) {
    if (!window.is_known() || std::ranges::find(shown_ns, window.length_ns()) == shown_ns.end()) continue;
    print(line, "{}{} of the worst {}", separator, percent(window.least()), length_text(window.length_ns()));
    separator = ", ";
  }
  if (line.text().empty()) return;
  add_line(out, line.text());
}

void add_utilization_table(TextBuffer& out, const std::vector<WindowUtilization>& windows, std::uint64_t start_ns,
                           std::uint64_t start_realtime_ns) {
  if (std::ranges::none_of(windows, &WindowUtilization::is_known)) return;
  TextTable table{2};
  table.column("WINDOW", 7).column("MIN", 7).column("P99.9", 7).column("P99", 7);
  for (const WindowUtilization& window : windows) {
    if (!window.is_known()) continue;
    table.row();
    table.cell(length_text(window.length_ns()));
    for (const double share : {window.least(), window.percentile(99.9), window.percentile(99)})
      table.cell(percent(share));
    if (window.least() == 1) continue;
    const DomainLife& domain = window.worst_domain();
    TextBuffer worst;
    print(worst, "pid {} domain {}, from {}", domain.pid, DomainName{domain.domain, domain.incarnation},
          WhenOf{window.worst_begin_ns(), start_ns, start_realtime_ns});
    table.remark(worst.text());
  }
  out.add('\n');
  add_line(
      out,
      "MMU: how much of a window of time pauses left the program: in the worst window of a length (MIN), and in all "
      "but the worst 0.1% (P99.9) and 1% (P99)");
  table.write(out);
}

void add_utilization(JsonWriter& json, const std::vector<WindowUtilization>& windows, bool is_unknown) {
  if (is_unknown) return json.member("mmu", std::optional<int>{});
  json.key("mmu").array([&] {
    for (const WindowUtilization& window : windows) {
      if (!window.is_known()) continue;
      json.object([&] {
        json.member("window_ns", window.length_ns());
        json.member("min", window.least());
        json.member("p99_9", window.percentile(99.9));
        json.member("p99", window.percentile(99));
        if (window.least() == 1) return;
        const DomainLife& domain = window.worst_domain();
        json.key("worst").object([&] {
          json.member("begin_ns", window.worst_begin_ns());
          json.member("pid", domain.pid);
          json.member("domain", domain.domain);
          json.member("incarnation", domain.incarnation);
        });
      });
    }
  });
}

}  // namespace rtev
