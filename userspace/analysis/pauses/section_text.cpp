// SPDX-License-Identifier: MIT
#include "analysis/pauses/section_text.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/pauses/pause_words.hpp"
#include "base/text_table.hpp"

namespace rtev {
namespace {

constexpr std::size_t thread_width = 17, max_domains = 16;

class Section {
 public:
  Section(TextBuffer& out, std::uint64_t start_ns) : out_(out), start_ns_(start_ns) {}

  void add(const PauseDetails& of, const PauseSection& part) {
    const StwSection& section = *part.section;
    const StwDomain* const last = section.last_to_arrive();
    print(out_, "\n    stop-the-world of {}, {} {}",
          Counted{section.domains.size() + section.unnamed, "domain", "domains"},
          section.leader_seen ? "requested at" : "leader unknown, from", Moment{section.begin_ns, start_ns_});
    if (last)
      print(out_, ", all arrived after {}", Duration{last->arrived_ns - std::min(last->arrived_ns, section.begin_ns)});
    if (!section.has_barrier) out_.add(", without waiting for each other");
    out_.add('\n');
    TextTable table{4};
    table.column("DOMAIN", 0).column("THREAD", thread_width + 2, TextTable::Align::left);
    table.column("ARRIVED", duration_width + 1).column("WAITED", duration_width);
    table.column("MINOR-END", duration_width + 1).column("WAITED", duration_width).column("PAUSE", duration_width);
    table.column("BEFORE IT ARRIVED", 0, TextTable::Align::left);
    std::vector<const StwDomain*> order;
    order.reserve(section.domains.size());
    for (const StwDomain& domain : section.domains) order.push_back(&domain);
    std::ranges::sort(order, {}, [](const StwDomain* domain) { return std::pair(domain->arrived_ns, domain->domain); });
    const std::size_t skipped = order.size() > max_domains ? order.size() - max_domains : 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      // The first to arrive matter least.
      const bool own = order[i] == &part.own();
      if (i >= skipped || own || order[i]->leads) participant(table, of, section, *order[i], last);
    }
    table.write(out_);
    if (skipped + section.unnamed > 0)
      print(out_, "    and about {} more that arrived earlier\n", Grouped{skipped + section.unnamed});
    if (!section.lost_domains.empty())
      print(out_, "    warning: words were lost in the rings of domains: {}\n", fmt::join(section.lost_domains, " "));
  }

 private:
  void participant(TextTable& table, const PauseDetails& of, const StwSection& section, const StwDomain& domain,
                   const StwDomain* last) const {
    TextBuffer thread;
    if (domain.tid == 0) {
      thread.add('?');
    } else {
      thread.add(domain.tid);
      if (domain.role == ThreadRole::backup) thread.add(" backup");
    }
    if (domain.leads) thread.add(" leads");
    const StwDomain* const slowest = section.last_to_end_minor();
    const std::uint64_t all_done = slowest ? std::min(slowest->minor_end_ns, domain.minor_passed_ns) : 0;
    table.row();
    table.cell(std::to_string(domain.domain));
    table.cell(thread.text());
    offset(table, domain.arrived_ns, section.begin_ns);
    table.duration(last ? last->arrived_ns - std::min(last->arrived_ns, domain.arrived_ns) : 0);
    offset(table, domain.minor_end_ns, section.begin_ns);
    table.duration(domain.minor_end_ns != 0 && all_done > domain.minor_end_ns ? all_done - domain.minor_end_ns : 0);
    if (domain.pause_begin_ns == 0) {
      table.cell("?");
    } else {
      table.duration(domain.pause_ns);
    }
    table.cell(before(of, section, domain));
    if (&domain == last) table.remark("<- last");
  }

  static std::string before(const PauseDetails& of, const StwSection& section, const StwDomain& domain) {
    if (!section.leader_seen || domain.before.time.total() == 0) return "-";
    TextBuffer text;
    std::string_view separator;
    const TimeSplit& split = domain.before.time;
    const auto state = [&](std::string_view name, std::uint64_t ns) {
      if (ns == 0) return;
      print(text, "{}{} {}", separator, name, Duration{ns});
      separator = ", ";
    };
    state("ran", split.on_cpu);
    state("blocked", split.blocked());
    state("unknown", split.unknown);
    state("no cpu", split.runnable);
    const CpuWait& wait = domain.before.longest_wait;
    if (wait.ns > 0) print(text, " {}", Behind{wait, of.domain.pid});
    return std::string{text.text()};
  }

  /// "+1.23ms" after the begin, or "-" if there is no such time.
  static void offset(TextTable& table, std::uint64_t time_ns, std::uint64_t begin_ns) {
    TextBuffer text;
    if (time_ns == 0) {
      text.add('-');
    } else {
      text.add(time_ns < begin_ns ? '-' : '+');
      add_duration(text, time_ns < begin_ns ? begin_ns - time_ns : time_ns - begin_ns);
    }
    table.cell(text.text());
  }

  TextBuffer& out_;
  const std::uint64_t start_ns_;
};

}  // namespace

void add_section(TextBuffer& out, const PauseDetails& pause, const PauseSection& part, std::uint64_t start_ns) {
  Section{out, start_ns}.add(pause, part);
}

}  // namespace rtev
