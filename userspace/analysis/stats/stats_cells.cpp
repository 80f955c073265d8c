// SPDX-License-Identifier: MIT
#include "analysis/stats/stats_cells.hpp"

#include <cmath>
#include <string>

namespace rtev {

void add_number(TextTable& table, const std::optional<std::uint64_t>& number, bool bound) {
  if (number) {
    table.cell(*number, bound);
  } else {
    table.cell("-");
  }
}

void add_time(TextTable& table, const std::optional<std::uint64_t>& ns, bool bound) {
  table.cell(ns ? fmt::format("{}", Duration{*ns}) : "-", bound && ns);
}

void add_share(TextTable& table, const std::optional<double>& share, bool bound) {
  if (share) {
    const auto hundredths = std::llround(*share * 1e4);
    table.cell(fmt::format("{}.{:02}%", hundredths / 100, hundredths % 100), bound);
  } else {
    table.cell("-");
  }
}

void add_count(TextBuffer& out, std::uint64_t count, std::string_view what, bool bound) {
  print(out, "{}{} {}", Grouped{count}, bound ? "+" : "", what);
}

void add_list(TextBuffer& out, std::string_view title, std::span<const std::uint64_t> figures,
              std::span<const std::string_view> names, std::string_view prefix, bool bound) {
  std::string_view separator;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (figures[i] == 0) continue;
    if (separator.empty()) print(out, "{}: ", title);
    std::string_view name = names[i];
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    out.add(separator);
    add_count(out, figures[i], name, bound);
    separator = ", ";
  }
  if (!separator.empty()) out.add('\n');
}

void add_user_events(TextBuffer& out, const ProcessStats& process, std::string_view indent, std::size_t most) {
  if (process.user_events.empty()) return;
  out.add(indent, "user events: ");
  std::uint64_t rest = process.other_user_events;
  std::string_view separator;
  for (std::size_t i = 0; i < process.user_events.size(); ++i) {
    const UserEventStats& user = process.user_events[i];
    if (i >= most) {
      rest = saturating_sum(rest, user.count);
      continue;
    }
    print(out, "{}{}{} ", separator, Grouped{user.count}, process.figures.missing.any() ? "+" : "");
    if (user.name.empty()) {
      print(out, "#{}", user.id);
    } else {
      add_quoted(out, user.name);
    }
    separator = ", ";
  }
  if (rest > 0) print(out, ", {} others", Grouped{rest});
  out.add('\n');
}

void add_why_bound(TextBuffer& out, const StatsFigures& figures, bool major) {
  major &= figures.major_words_lower_bound();
  if (!figures.missing.any() && !major) return;
  std::string_view separator = "  + lower bound: ";
  const auto because = [&](std::string_view why) {
    print(out, "{}{}", separator, why);
    separator = "; ";
  };
  if (figures.missing.lost)
    because(fmt::format("{} lost", Counted{figures.lost_words, "ring word was", "ring words were"}));
  if (figures.missing.paused) because("the program paused its events");
  if (figures.missing.unfinished) because("the end of a pause was not seen");
  if (figures.missing.before) because("the ring was partly overwritten before it was read");
  if (figures.missing.merged) because("too many domains for --memory-limit: collections were not counted to the end");
  if (major) because("MAJOR WORDS lacks allocations after the last slice of a domain");
  out.add('\n');
}

}  // namespace rtev
