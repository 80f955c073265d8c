// SPDX-License-Identifier: MIT
#include "cli/options.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iterator>
#include <utility>

#include "base/option_types.hpp"
#include "base/parse.hpp"
#include "rtev/names.hpp"
#include "stream/filter.hpp"

namespace rtev::cli {
namespace {

// Titles of groups in --help.
constexpr const char *selection_group = "Selection", *output_group = "Output", *tracing_group = "Tracing",
                     *other_group = "Other";

/// Catches "$UNSET" in a script, which must not mean stdout.
CLI::Validator not_empty() {
  return {[](const std::string& text) { return std::string(text.empty() ? "the file name is empty" : ""); }, ""};
}

CLI::Option* add_file(CLI::App& app, const char* name, std::string& path, const char* help) {
  return app.add_option(name, path, help)->type_name("FILE")->check(not_empty());
}

/// Checks --events. The list is parsed again where it is used.
CLI::Validator event_list() {
  return {[](const std::string& list) {
            const auto filter = EventFilter::parse(list);
            return filter ? std::string() : filter.error().message() + "\nhint: " + filter.error().hint;
          },
          ""};
}

void add_events_option(CLI::App& app, std::string& events) {
  app.add_option("--events", events,
                 "only these kinds of events (phase, counter, alloc, lifecycle, user, process, switch, wakeup) and "
                 "events with these names (wildcards allowed), e.g. 'user,minor*'")
      ->type_name("LIST")
      ->check(event_list())
      ->group(output_group);
}

/// Without the option the ending of -o decides, and `otherwise` if it has none.
void add_format(CLI::App& app, std::optional<Format>& format, Format otherwise) {
  std::vector<std::pair<std::string, Format>> choices;
  std::string help = fmt::format("default: by the ending of -o FILE, else {}", info_of(otherwise).name);
  for (const FormatInfo& info : all_formats()) {
    choices.emplace_back(info.name, info.format);
    fmt::format_to(std::back_inserter(help), "\n{} ({}): {}", info.name, fmt::join(info.suffixes, ", "), info.purpose);
  }
  const auto refuse_compression = [](const std::string& text) {
    constexpr const char* refusal =
        "compression is not a format\nhint: to compress, end the file name in .gz: -o FILE.gz";
    return std::string(text.ends_with(".gz") ? refusal : "");
  };
  add_choice(app, "-f,--format", format, std::move(choices), help)->check(refuse_compression)->group(output_group);
}

}  // namespace

void add_process_options(CLI::App& app, ProcessOptions& options) {
  app.add_option("-p,--pid", options.pids, "only the process with this id; repeatable")
      ->type_name("PID")
      ->check(expects("a process id",
                      [](const std::string& text) { return parse_number<std::int32_t>(text).value_or(0) > 0; }))
      ->group(selection_group);
  app.add_option("-n,--name", options.names, "only processes whose name matches, e.g. 'web*'; repeatable")
      ->type_name("GLOB")
      ->group(selection_group);
  add_time_option(app, "-d,--duration", options.duration, "stop after this time, e.g. 500ms, 5s, 2m")
      ->group(selection_group);
}

void add_common_options(CLI::App& app, ReadOptions& options) {
  app.add_option("--ocaml-version", options.ocaml_version,
                 "name events as this version of OCaml does, e.g. 5.2, instead of detecting the version")
      ->type_name("X.Y")
      ->check(expects("a version of OCaml 5, e.g. 5.2",
                      [](const std::string& text) { return family_of_version(text).has_value(); }))
      ->group(other_group);
  app.add_flag("-q,--quiet", options.quiet, "print errors only")->group(other_group);
  app.add_flag("-v,--verbose", options.verbose, "also print messages of libbpf")->group(other_group);
}

void add_trace_options(CLI::App& app, TraceOptions& options) {
  add_choice<Sched>(app, "--sched", options.sched, {{"off", Sched::off}, {"ocaml", Sched::ocaml}, {"all", Sched::all}},
                    "trace scheduler events of no threads, of the threads of OCaml processes (default), or of all "
                    "threads")
      ->group(tracing_group);
  CLI::Option* const ringless =
      app.add_flag("--ringless", options.ringless,
                   "also trace programs that run with events off, by uprobes; an event then costs the program "
                   "1.3 to 1.6 µs instead of 0.03 µs")
          ->group(tracing_group);
  add_number_option<std::uint64_t>(app, "--ringless-limit", options.ringless_limit, 10, 1'000'000'000,
                                   "remove the probes of a program for a while if it emits more than N events per "
                                   "second, measured over 100 ms (default 100000)")
      ->needs(ringless)
      ->group(tracing_group);
  app.add_flag("--history", options.history, "also show the events that a ring held when it was found")
      ->group(tracing_group);
  add_choice<SaveRings>(
      app, "--save-rings", options.save_rings,
      {{"off", SaveRings::off}, {"known", SaveRings::known}, {"all", SaveRings::all}},
      "let the kernel copy rings that may be gone before they are read: of no process; of processes that end and whose "
      "runtime functions are probed and, since Linux 6.10, of those that exec (default); or of all processes, which "
      "costs each mmap() and munmap() of the host 0.2 µs, before Linux 6.4 also each page fault")
      ->group(tracing_group);
  const auto accept_size = [&options](const std::string& text) {
    options.buffer_bytes = parse_size(text);
    return options.buffer_bytes.has_value();
  };
  add_parsed_option(app, "--buffer", "SIZE", "a size, e.g. 512k, 64M", accept_size,
                    "memory for scheduler events of all CPUs together (default 1M per CPU, from 4M to 64M)")
      ->group(tracing_group);
}

void add_output_options(CLI::App& app, OutputOptions& options) {
  add_file(app, "-o,--output", options.path, "write to FILE instead of stdout; FILE.gz is compressed")
      ->group(output_group);
  add_format(app, options.format, Format::text);
  add_choice<ColorMode>(app, "--color", options.color,
                        {{"auto", ColorMode::automatic}, {"always", ColorMode::always}, {"never", ColorMode::never}},
                        "colours in text; auto (default): on a terminal, unless NO_COLOR is set")
      ->group(output_group);
  add_events_option(app, options.events);
}

void add_recording_options(CLI::App& app, OutputOptions& options) {
  add_file(app, "-o,--output", options.path, "the file to write, or - for stdout; FILE.gz is compressed")
      ->required()
      ->group(output_group);
  add_format(app, options.format, Format::fxt);
  add_events_option(app, options.events);
}

void add_analysis_options(CLI::App& app, AnalysisOptions& options) {
  CLI::Option* const input = add_file(
      app, "-i,--input", options.input,
      "analyse a recording (.fxt, - for stdin), a ring file PID.events, or the ring of process PID, instead of "
      "tracing");
  add_process_options(app, options);
  add_file(app, "-o,--output", options.output, "write the report to FILE instead of stdout")->group(output_group);
  add_choice<bool>(app, "-f,--format", options.json, {{"text", false}, {"json", true}},
                   "text for people (default), or JSON for programs")
      ->group(output_group);
  add_trace_options(app, options);
  add_common_options(app, options);
  // They say how to trace, so they have no effect on a recording.
  for (const CLI::Option* const option : app.get_options())
    if (option->get_group() == tracing_group) input->excludes(app.get_option("--" + option->get_lnames().front()));
}

void add_min_option(CLI::App& app, std::chrono::nanoseconds& min) {
  add_time_option(app, "--min", min, "only those that last at least this long");
}

void add_target(CLI::App& app, std::string& target) {
  app.add_option("SOURCE", target, "a recording (.fxt, - for stdin), a ring file PID.events, or the id of a process")
      ->check(not_empty())
      ->required();
}

}  // namespace rtev::cli
