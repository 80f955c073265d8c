// SPDX-License-Identifier: MIT
#include "analysis/profile/profile_words.hpp"

#include <algorithm>

#include "base/enum_names.hpp"
#include "base/escape.hpp"
#include "base/folding.hpp"
#include "base/program_names.hpp"

namespace rtev {
namespace {

constexpr std::size_t max_name = 60, max_file = 28;

std::string_view option_of(SampleKind kind) {
  static constexpr std::string_view commands[]{"profile", "profile --off-cpu", "allocs"};
  return name_at(commands, kind);
}

}  // namespace

void append(TextBuffer& out, const SourceLine& line) {
  const ProfilePlace& place = line.tree.places()[line.place];
  const ProfileFunction& function = line.tree.functions()[place.function];
  if (!function.file.empty()) {
    out.add(std::string_view(cut_middle(escaped(file_name_of(function.file)), max_file)));
    if (place.line != 0) out.add(':', place.line);
  } else if (!function.object.empty() && function.kind == FrameKind::c) {
    const std::string_view binary = line.tree.binary_of(line.place);
    out.add(std::string_view(cut_middle(escaped(binary.empty() ? file_name_of(function.object) : binary), max_file)));
  }
}

void append(TextBuffer& out, const PlaceName& name) {
  const ProfilePlace& place = name.tree.places()[name.place];
  const ProfileFunction& function = name.tree.functions()[place.function];
  out.add(std::string_view(function_cell(name.tree, name.place, name.width)));
  TextBuffer line;
  append(line, SourceLine{name.tree, name.place});
  if (!line.text().empty()) {
    const bool is_object = function.file.empty();
    out.add(is_object ? std::string_view(" (") : std::string_view(" "), line.text());
    if (is_object) return out.add(')');
  }
  if (name.with_binary) add_binary(out, name.tree, name.place);
}

void add_binary(TextBuffer& out, const CallTree& tree, CallTree::Index place) {
  if (const std::string_view binary = tree.binary_of(place); !binary.empty()) print(out, " of {}", Escaped{binary});
}

std::string place_cell(const CallTree& tree, CallTree::Index place, std::size_t width) {
  TextBuffer text;
  append(text, SourceLine{tree, place});
  const bool is_binary = tree.functions()[tree.places()[place].function].file.empty() && !text.text().empty();
  if (!is_binary) add_binary(text, tree, place);
  return cut_middle(text.text(), width);
}

void append(TextBuffer& out, const Weight& weight) {
  switch (weight.unit) {
    case WeightUnit::ns:
      return append(out, Duration{weight.weight});
    case WeightUnit::bytes:
      return append(out, Size{weight.weight});
    case WeightUnit::samples:
      return append(out, Counted{weight.weight, "sample", "samples"});
  }
}

std::string function_cell(const CallTree& tree, CallTree::Index place, std::size_t width) {
  return cut_middle(fmt::format("{}", tree.functions()[tree.places()[place].function]), width);
}

std::string where_hottest(const ProfileReport& report) {
  const ProfileHottest& hottest = report.hottest;
  const CallTree& tree = report.tree;
  const ProfileFunction& function = tree.functions()[tree.places()[hottest.place].function];
  TextBuffer text;
  print(text, "in {}", function_cell(tree, hottest.place, max_name));
  if (!function.file.empty()) {
    const std::uint64_t whole = report.shown(hottest.value).weight;
    print(text, " {}", SourceLine{tree, hottest.place});
    if (hottest.at_place.weight < whole - whole / 10) text.add(" and other lines");
  }
  add_binary(text, tree, hottest.place);
  if (hottest.inner) print(text, " ({})", function_cell(tree, *hottest.inner, max_name));
  if (hottest.caller) {
    const std::uint64_t whole = report.shown(hottest.value).weight;
    const bool is_most = hottest.in_caller.weight >= whole - whole / 10;
    print(text, ", {} from {}", is_most ? "called" : "most often called", PlaceName{tree, *hottest.caller});
  }
  return std::string(text.text());
}

void add_few(TextBuffer& out, const ProfileReport& report) {
  const std::uint64_t all = report.shown(report.all).samples, there = report.shown(report.hottest.value).samples;
  if (all == 1) {
    print(out, "only 1 sample, ");
  } else {
    print(out, "only {} samples, too few for shares: {} of them ", Grouped{all}, Grouped{there});
  }
}

void add_sample_notes(TextBuffer& out, const ProfileReport& report) {
  const auto line = [&](std::string_view text) { out.add(std::string_view(folded(text, 0, 2)), '\n'); };
  const std::uint64_t samples = sum_of(report.all).samples;
  const auto counted = [](std::uint64_t count) { return Counted{count, "sample", "samples"}; };
  const std::uint64_t taken = report.dropped + samples;
  if (report.dropped > 0 && report.kind == SampleKind::off_cpu)
    line(fmt::format("warning: {} of {} left out, as their stacks were not taken: the threads go to sleep too often",
                     Percent{report.dropped, taken}, Counted{taken, "sleep", "sleeps"}));
  else if (report.dropped > 0)
    line(fmt::format("warning: {} of {} dropped: there were too many at once", Percent{report.dropped, taken},
                     counted(taken)));
  constexpr std::uint64_t few = 200;  // 1 in so many stacks
  if (report.cut > samples / few)
    line(fmt::format(
        "{} of the stacks were too long to be copied whole: they end in [cut], and TOTAL of their callers is too low",
        Percent{report.cut, samples}));
  if (const std::uint64_t unknown = report.incomplete - report.cut; unknown > samples / few)
    line(fmt::format(
        "{} of the stacks end in [unknown], as no caller was found there: TOTAL of their callers is too low",
        Percent{unknown, samples}));
  if (report.unknown_process > 0) line(fmt::format("{} of unknown processes", counted(report.unknown_process)));
  if (report.undecided > 0)
    line(fmt::format("{} left out: it is unknown how long the spans took that they are in", counted(report.undecided)));
  if (report.without_room > 0)
    line(fmt::format("{} counted without their stacks: there were too many different ones",
                     counted(report.without_room)));
}

void add_no_samples(TextBuffer& out, const ProfileReport& report) {
  TextBuffer text;
  static constexpr std::string_view what[]{"of CPU time", "of sleeping threads", "of allocations"};
  print(text, "no samples {}", name_at(what, report.kind));
  std::string_view other;
  for (std::size_t kind = report.samples_of_kind.size(); kind-- > 0;) {
    if (report.samples_of_kind[kind] > 0) other = option_of(static_cast<SampleKind>(kind));
  }
  if (report.samples_of_kind[static_cast<std::size_t>(report.kind)] > 0) {
    text.add(" that count: short sleeps, and those of the runtime's own threads, are left out");
  } else if (!other.empty()) {
    print(text, ", but others: rtev-bpf {} shows them", other);
  } else if (report.not_recorded.has(EventKind::sample)) {
    print(text, ": {}", report.not_recorded.text({EventKind::sample}));
  } else if (report.process_count == 0) {
    text.add(": no OCaml process was seen");
  } else {
    const Counted processes{report.process_count, "OCaml process", "OCaml processes"};
    if (report.of_recording)
      text.add(": the recording holds no stacks");
    else if (report.cpu_ns > 0)
      print(text, ": {} used {} of CPU time", processes, Duration{report.cpu_ns});
    else if (report.switches_seen)
      print(text, ": no thread of {} was seen to run", processes);
    else if (report.all_slept)
      print(text, ": no thread of {} ran or was woken in {}: they slept all the time", processes,
            Duration{report.end_ns - report.start_ns});
    else
      print(text, ": there are no scheduler events, so it is unknown whether threads of {} ran", processes);
    if (report.of_recording)
      text.add("\nhint: rtev-bpf record --stacks takes them");
    else if (report.kind == SampleKind::allocation)
      text.add("\nhint: programs without symbols (stripped) have none");
    else if (report.kind == SampleKind::on_cpu && (report.switches_seen || report.all_slept))
      text.add("\nhint: rtev-bpf profile --off-cpu shows where threads slept, once they run again");
    else if (report.kind == SampleKind::off_cpu)
      text.add("\nhint: a sleep counts when it ends, from 1ms on (--off-cpu TIME)");
  }
  add_lines(out, text.text());
  if (report.dropped > 0) print(out, "warning: {} dropped\n", Counted{report.dropped, "sample was", "samples were"});
}

}  // namespace rtev
