// SPDX-License-Identifier: MIT
#include "formats/brief/brief_text.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/pauses/blame.hpp"
#include "analysis/place_text.hpp"
#include "analysis/report_text.hpp"
#include "stream/stw_phases.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t notable_part = 10;  // a tenth of the pause

/// The two phases in which most of the pause was spent, without those in which it waited for other domains.
void add_phases(TextBuffer& out, const PauseDetails& pause) {
  const StwPhases& barriers = StwPhases::of(pause.domain.family);
  std::vector<const PhaseTree::Node*> phases;
  for (const PhaseTree::Node& node : pause.phases.nodes()) {
    if (node.phase == barriers.start_barrier || node.phase == barriers.minor_barrier) continue;
    if (node.depth > 0 && node.own_ns > 0 && node.own_ns >= pause.duration_ns() / notable_part) phases.push_back(&node);
  }
  std::ranges::sort(phases, std::ranges::greater{}, &PhaseTree::Node::own_ns);
  constexpr std::size_t most = 2;
  if (phases.size() > most) phases.resize(most);
  print(out, "({}", PhaseName{pause.domain.family, pause.root});
  std::string_view separator = ": ";
  for (const PhaseTree::Node* const phase : phases) {
    print(out, "{}{} {}", separator, PhaseName{pause.domain.family, phase->phase}, Duration{phase->own_ns});
    separator = ", ";
  }
  out.add(')');
}

/// What the thread did in the pause, most of it first.
class Parts {
 public:
  Parts(const PauseDetails& pause, const StackTable& stacks)
      : pause_(pause), blame_(blame_of(pause)), stacks_(stacks) {}

  std::string text() {
    const TimeSplit& besides = pause_.besides;
    add(besides.on_cpu, "on CPU");
    add(besides.runnable, "no CPU", competitor());
    add(besides.blocked(), "blocked");
    add(pause_.start_wait_ns, "waited", others(Cause::late_domain, "to stop"));
    add(pause_.finish_wait_ns, "waited", others(Cause::slow_domain, "to end its minor collection"));
    if (besides.unknown < pause_.duration_ns()) add(besides.unknown, "unknown");
    std::ranges::sort(parts_, std::ranges::greater{}, &Part::ns);
    std::string text;
    for (const Part& part : parts_) text += (text.empty() ? "" : ", ") + part.text;
    return text;
  }

 private:
  struct Part {
    std::uint64_t ns;
    std::string text;
  };

  void add(std::uint64_t ns, std::string_view what, const std::string& details = {}) {
    if (ns == 0 || ns < pause_.duration_ns() / notable_part) return;
    const bool is_nearly_all = ns >= pause_.duration_ns() / 20 * 19;
    const std::string share = is_nearly_all ? "" : fmt::format(" {}", Percent{ns, pause_.duration_ns()});
    parts_.push_back({ns, fmt::format("{}{}{}", what, share, details)});
  }
  std::string competitor() const {
    const auto competitors = pause_.scheduling.competitors();
    if (competitors.empty()) return {};
    const CpuWait& wait = competitors.front().wait;
    const std::optional<Thread>& by = wait.by;
    if (!wait.is_most_of(pause_.time.runnable) || by->tid == 0) return {};
    if (by->pid == pause_.domain.pid) return fmt::format(" behind own thread {}", by->tid);
    return fmt::format(" behind {}", ProcessName{by->comm(), by->pid});
  }
  std::string others(Cause cause, std::string_view what) const {
    if (blame_.cause != cause || !blame_.domain) return " for other domains";
    const std::string where = place();
    if (where.empty()) return fmt::format(" for domain {} {}", blame_.domain->domain, what);
    return fmt::format(" for domain {}, which was in {}", blame_.domain->domain, where);
  }
  /// Where the domain that the pause waited for was, if stacks are sampled.
  std::string place() const {
    const ThreadActivity& activity = blame_.cause == Cause::late_domain ? blame_.domain->before : blame_.domain->minor;
    const SampleKind kind = blame_.why == Why::blocked ? SampleKind::off_cpu : SampleKind::on_cpu;
    return short_place_text(activity.stacks, kind, stacks_);
  }

  const PauseDetails& pause_;
  Blame blame_;
  const StackTable& stacks_;
  std::vector<Part> parts_;
};

}  // namespace

std::string pause_cause(const PauseDetails& pause, const StackTable& stacks) {
  TextBuffer out;
  if (const std::string parts = Parts(pause, stacks).text(); !parts.empty()) out.add(std::string_view(parts), "  ");
  add_phases(out, pause);
  return std::string{out.text()};
}

}  // namespace rtev
