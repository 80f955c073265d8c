// SPDX-License-Identifier: MIT
#include "formats/brief/brief_text.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/pauses/blame.hpp"
#include "analysis/report_text.hpp"
#include "stream/stw_phases.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t notable = 10;  // a tenth of the pause

/// The two phases in which most of the pause was spent, without those in which it waited for other domains.
void add_phases(TextBuffer& out, const PauseDetails& pause) {
  const StwPhases& barriers = StwPhases::of(pause.domain.family);
  std::vector<const PhaseTree::Node*> phases;
  for (const PhaseTree::Node& node : pause.phases.nodes()) {
    if (node.phase == barriers.start_barrier || node.phase == barriers.minor_barrier) continue;
    if (node.depth > 0 && node.own_ns > 0 && node.own_ns >= pause.duration_ns() / notable) phases.push_back(&node);
  }
  std::ranges::sort(phases, std::ranges::greater{}, &PhaseTree::Node::own_ns);
  constexpr std::size_t most = 2;
  if (phases.size() > most) phases.resize(most);
  std::string_view separator = " (";
  for (const PhaseTree::Node* const phase : phases) {
    print(out, "{}{} {}", separator, PhaseName{pause.domain.family, phase->phase}, Duration{phase->own_ns});
    separator = ", ";
  }
  if (!phases.empty()) out.add(')');
}

class Parts {
 public:
  Parts(TextBuffer& out, const PauseDetails& pause) : out_(out), pause_(pause) {}

  void add() {
    const Blame blame = blame_of(pause_);
    const TimeSplit& besides = pause_.besides;
    part("on CPU ", besides.on_cpu);
    if (part("no CPU ", besides.runnable)) competitor();
    part("blocked ", besides.blocked());
    if (part("waited ", pause_.start_wait_ns)) others(blame, Cause::late_domain, "to stop");
    if (part("waited ", pause_.finish_wait_ns)) others(blame, Cause::slow_domain, "to end its minor collection");
    if (besides.unknown < pause_.duration_ns()) part("unknown ", besides.unknown);
  }

 private:
  bool part(std::string_view name, std::uint64_t ns) {
    if (ns == 0 || ns < pause_.duration_ns() / notable) return false;
    print(out_, "{}{}{}", separator_, name, Percent{ns, pause_.duration_ns()});
    separator_ = ", ";
    return true;
  }
  void competitor() {
    const auto competitors = pause_.scheduling.competitors();
    if (competitors.empty()) return;
    const std::optional<Thread>& by = competitors.front().wait.by;
    if (!by || by->tid == 0) return;
    if (by->pid == pause_.domain.pid)
      print(out_, " behind its thread {}", by->tid);
    else
      print(out_, " behind {}", ProcessName{by->comm(), by->pid});
  }
  void others(const Blame& blame, Cause cause, std::string_view what) {
    if (blame.cause == cause && blame.domain)
      print(out_, " for domain {} {}", blame.domain->domain, what);
    else
      print(out_, " for other domains");
  }

  TextBuffer& out_;
  const PauseDetails& pause_;
  std::string_view separator_ = "  ";
};

}  // namespace

std::string pause_line(const PauseDetails& pause) {
  TextBuffer out;
  print(out, "{:>6} {}", Duration{pause.duration_ns()}, PhaseName{pause.domain.family, pause.root});
  add_phases(out, pause);
  Parts(out, pause).add();
  return std::string{out.text()};
}

}  // namespace rtev
