// SPDX-License-Identifier: MIT
// What the HTML report says without scripts: title, verdict, findings and main figures.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/gc_stacks.hpp"
#include "analysis/report_text.hpp"
#include "base/escape.hpp"
#include "base/html_text.hpp"
#include "base/text_format.hpp"
#include "base/utc_time.hpp"
#include "formats/report/html_report.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t bytes_of_a_word = 8;

std::string_view verdict_words(Score score) {
  return score == Score::bad ? "Something is wrong" : score == Score::warning ? "Worth a look" : "It does well";
}

std::string badge(Score score) {
  return fmt::format(R"(<span class="score {0}">{0}</span>)", to_string(score));
}

std::string tenths_of_percent(double tenths) {
  return fmt::format("{:.1f}%", tenths / 10);
}

std::string text_of_words(std::uint64_t words) {
  return fmt::format("{}", Size{words > UINT64_MAX / bytes_of_a_word ? UINT64_MAX : words * bytes_of_a_word});
}

class ReportHead {
 public:
  explicit ReportHead(const HtmlReport& report) : report_(report) {}

  std::string html() {
    header();
    html_ += "<main id=\"main\">\n";
    verdict();
    findings();
    tiles();
    // Not in <noscript>: where a policy or a mail program forbids scripts, that is not shown.
    html_ +=
        "<p id=\"loading\" class=\"soft\">Charts and tables follow where the page may run its script. It loads nothing "
        "from elsewhere.</p>\n</main>\n";
    return std::move(html_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    html_ += fmt::format(format, std::forward<Args>(args)...);
  }

  void header() {
    add("<body>\n<header>\n<h1 id=\"title\">{}</h1>\n<p id=\"facts\" class=\"soft\">{}",
        html_text(report_title(report_)), Duration{report_.pauses.end_ns - report_.pauses.start_ns});
    if (const std::uint64_t ns = report_.pauses.run_realtime_ns; ns != 0) {
      UtcTime utc;
      utc.set_origin(report_.pauses.run_ns, ns);
      std::array<char, UtcTime::length> text;
      std::string time(utc.put(text, report_.pauses.start_ns));
      time.resize(std::min(time.find('.'), time.size()));
      std::ranges::replace(time, 'T', ' ');
      add(" · {} UTC", time);
    }
    if (!report_.header.host.empty()) add(" · on {}", html_text(escaped(report_.header.host)));
    if (!report_.pauses.input.empty()) add(" · from {}", html_text(report_.pauses.input));
    html_ += "</p>\n</header>\n";
  }

  void verdict() {
    const Finding& first = report_.findings.front();
    std::vector<std::string> severe;
    for (const Finding& finding : report_.findings)
      if (finding.score >= Score::warning) severe.push_back(html_text(finding.title));
    add(R"(<section id="verdict" class="{}" aria-labelledby="verdict-title"><h2 id="verdict-title">{}{}: )",
        to_string(first.score), badge(first.score), verdict_words(first.score));
    constexpr std::size_t max_titles = 3;
    for (std::size_t i = 0; i < std::min(severe.size(), max_titles); ++i) add("{}{}", i == 0 ? "" : "; ", severe[i]);
    if (severe.size() > max_titles) add("; and {} more", severe.size() - max_titles);
    if (severe.empty()) html_ += "no finding needs attention";
    html_ += "</h2>\n";
    if (severe.empty()) add("<p>{}</p>\n", html_text(first.text));
    html_ += "</section>\n";
  }

  void finding(const Finding& of) {
    add("<li class=\"finding\"><div>{}</div><div><h3><a href=\"#{}\">{}</a></h3>\n<p>{}</p>\n", badge(of.score),
        of.section, html_text(of.title), html_text(of.text));
    if (!of.next.empty() || !of.command.empty()) {
      add("<p class=\"soft\">{}{}", html_text(of.next), of.next.empty() || of.command.empty() ? "" : " ");
      if (!of.command.empty()) add("<code>{}</code>", html_text(of.command));
      html_ += "</p>\n";
    }
    html_ += "</div></li>\n";
  }

  void findings() {
    std::string titles;
    std::size_t calm = 0;
    html_ += "<h2 id=\"findings\" class=\"bare\">Findings</h2>\n";
    if (report_.findings.front().score != Score::ok) {
      html_ += "<ul class=\"plain\">\n";
      for (const Finding& of : report_.findings)
        if (of.score != Score::ok) finding(of);
      html_ += "</ul>\n";
    }
    for (const Finding& of : report_.findings)
      if (of.score == Score::ok) titles += (calm++ == 0 ? "" : "; ") + html_text(of.title);
    if (calm == 0) return;
    add("<details{}><summary>{} checked and fine: {}</summary>\n<ul class=\"plain\">\n",
        calm == report_.findings.size() ? " open" : "", calm, titles);
    for (const Finding& of : report_.findings)
      if (of.score == Score::ok) finding(of);
    html_ += "</ul></details>\n";
  }

  void tile(std::string_view name, std::string_view value, std::string_view more) {
    add("<div class=\"tile\"><dt>{}</dt><dd>{}<span class=\"soft\">{}</span></dd></div>\n", html_text(name),
        html_text(value), html_text(more));
  }

  void tiles() {
    html_ += "<section id=\"tiles-section\" aria-label=\"main figures\"><dl id=\"tiles\">\n";
    const Histogram& pauses = report_.latency.all.wall;
    const auto below = [&](double percentile) -> std::string {
      const auto ns = pauses.known_percentile(percentile);
      return ns ? fmt::format("{}", Duration{*ns}) : "";
    };
    const auto also_below = [&](double percentile) {
      const std::string length = below(percentile);
      return length.empty() ? "" : fmt::format("{}% below {}", percentile, length);
    };
    const bool has_pauses = pauses.count() > 0;
    const std::string_view none = report_.latency.is_unknown() ? "unknown" : "none";
    const std::string_view bound = at_least(report_.latency.lower_bound());
    tile("pauses", has_pauses ? fmt::format("{}{}", bound, Grouped{pauses.count()}) : std::string(none),
         has_pauses ? fmt::format("{} together", Duration{pauses.total()}) : "");
    tile("longest pause", has_pauses ? fmt::format("{}{}", bound, Duration{pauses.max()}) : std::string(none),
         also_below(99.9));
    tile("99% below",
         !below(99).empty() ? below(99)
         : has_pauses       ? "too few pauses"
                            : std::string(none),
         also_below(50));
    const StatsFigures& total = report_.stats.total;
    const auto share = total.gc_share();
    const std::string_view phases_bound = at_least(total.phases_bound()),
                           minor_bound = at_least(total.minor_words_bound());
    tile("time in the GC", share ? std::string(phases_bound) + tenths_of_percent(std::round(*share * 1000)) : "unknown",
         total.sampled_ns >= least_sampled_ns && total.gc_sample_share()
             ? fmt::format("by stacks {}{} of CPU time", phases_bound, Percent{total.gc_sampled_ns, total.sampled_ns})
         : total.known_gc_cpu()
             ? fmt::format("{}{} of CPU time in phases", at_least(total.gc_cpu_bound()), Duration{total.gc_cpu_ns})
             : "CPU time unknown");
    utilization();
    heap();
    const ProcessStats* const only = report_.stats.processes.size() == 1 ? &report_.stats.processes.front() : nullptr;
    const std::uint64_t wall_ns = only != nullptr ? only->figures.wall_ns : total.wall_ns;
    const double per_second =
        static_cast<double>(total.minor_words) * 1e9 / static_cast<double>(std::max<std::uint64_t>(wall_ns, 1));
    if (!total.known_minor_words()) {
      tile("allocated in minor heaps", "unknown", "");
    } else {
      tile("allocated in minor heaps", std::string(minor_bound) + text_of_words(total.minor_words),
           fmt::format("{}/s, {} promoted", text_of_words(static_cast<std::uint64_t>(std::min(per_second, 1e18))),
                       Percent{total.promoted_words, total.minor_words}));
    }
    if (!total.known_minor_collections()) {
      tile("minor collections", "unknown", "");
    } else {
      tile("minor collections", fmt::format("{}{}", phases_bound, Grouped{total.minor_collections}),
           fmt::format("{}", Counted{total.major_cycles, "major cycle", "major cycles"}));
    }
    const bool is_known = total.known_lost_words(report_.stats.truncated).has_value(),
               is_all = is_known && report_.stats.not_recorded.selection.empty();
    tile("lost of rings",
         total.lost_words > 0 ? fmt::format("{}", Grouped{total.lost_words})
         : is_known           ? "nothing"
                              : "unknown",
         total.lost_words > 0 ? "words"
         : !total.known_events()
             ? ""
             : fmt::format("{}{}", is_all ? "all of " : "", Counted{total.events, "event", "events"}));
    html_ += "</dl></section>\n";
  }

  /// Of what is left, rounded down: less than all must not look like all.
  void utilization() {
    constexpr std::uint64_t wanted_ns = 100'000'000, ms_ns = 1'000'000;
    const WindowUtilization* shown = nullptr;
    for (const WindowUtilization& window : report_.pauses.utilization)
      if (window.is_known() && (shown == nullptr || shown->length_ns() != wanted_ns)) shown = &window;
    if (shown == nullptr) return;
    tile(fmt::format("MMU of {}ms", shown->length_ns() / ms_ns), tenths_of_percent(std::floor(shown->least() * 1000)),
         "left to the program");
  }

  /// The largest one.
  void heap() {
    const auto& processes = report_.stats.processes;
    const auto largest =
        std::ranges::max_element(processes, {}, [](const ProcessStats& process) { return process.heap_words.last(); });
    if (largest == processes.end() || largest->heap_words.count() == 0) return;
    tile(processes.size() > 1 ? fmt::format("heap of {} at the end", Escaped{largest->comm}) : "heap at the end",
         text_of_words(largest->heap_words.last()),
         fmt::format("{} at first", text_of_words(largest->heap_words.first())));
  }

  const HtmlReport& report_;
  std::string html_;
};

}  // namespace

std::string report_title(const HtmlReport& report) {
  const auto& processes = report.stats.processes;
  if (processes.empty()) return "no OCaml process";
  const auto& programs = report.stats.programs;
  if (programs.size() == 1 && programs.front().processes > 1)
    return fmt::format("{}, {} processes", Escaped{programs.front().comm}, Grouped{programs.front().processes});
  const std::string first = fmt::format("{}", ProcessName{processes.front().comm, processes.front().pid});
  // Without forks that did nothing but execute another program.
  const auto idle = static_cast<std::size_t>(std::ranges::count_if(processes, &ProcessStats::did_nothing));
  const std::size_t others = processes.size() - 1 - std::min(idle, processes.size() - 1);
  return others > 0 ? fmt::format("{} and {}", first, Counted{others, "other", "others"}) : first;
}

std::string report_head(const HtmlReport& report) {
  return ReportHead(report).html();
}

}  // namespace rtev
