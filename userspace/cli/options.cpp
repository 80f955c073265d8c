// SPDX-License-Identifier: MIT
#include "cli/options.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/choice.hpp"
#include "base/parse.hpp"
#include "base/quantity.hpp"
#include "rtev/names.hpp"
#include "stream/filter.hpp"

namespace rtev::cli {
namespace {

/// "$UNSET" in a script shall not mean stdout.
CLI::Validator not_empty() {
  return {[](const std::string& text) { return text.empty() ? std::string("the name of the file is empty") : ""; }, ""};
}

template <typename Time>
void add_time_option(CLI::App& app, const char* name, Time& value, const char* help) {
  app.add_option_function<std::string>(
         name,
         [&value, name](const std::string& text) {
           const auto time = parse_duration(text);
           if (!time)
             throw CLI::ValidationError(name, "'" + escaped(text) + "' is no time above zero; e.g. 500ms, 5s, 2m");
           value = *time;
         },
         help)
      ->type_name("TIME");
}

}  // namespace

void add_target(CLI::App& app, const char* name, Options& options) {
  app.add_option(name, options.target, "a recording (.fxt, - for stdin), PID.events, or a pid")
      ->check(not_empty())
      ->required();
}

void add_process_options(CLI::App& app, Options& options) {
  app.add_option("-p,--pid", options.pids, "only this process (repeatable)")
      ->type_name("PID")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return parse_number<std::int32_t>(text).value_or(0) > 0 ? std::string() : "'" + text + "' is no pid";
          },
          ""));
  app.add_option("-n,--name", options.names, "only processes whose name matches (repeatable), e.g. 'web*'")
      ->type_name("GLOB");
  add_time_option(app, "-d,--duration", options.duration, "stop after this time, e.g. 500ms, 5s, 2m");
}

namespace {

void add_events_option(CLI::App& app, Options& options) {
  app.add_option("--events", options.events,
                 "only these: kinds (phase, counter, alloc, lifecycle, user, process, switch, wakeup) and names "
                 "(any other word; wildcards allowed), e.g. 'user,minor*'")
      ->type_name("LIST")
      ->check(CLI::Validator(
          [](const std::string& list) {
            const auto filter = EventFilter::parse(list);
            return filter ? std::string() : filter.error().message() + "\nhint: " + filter.error().hint;
          },
          ""));
}

/// Without the option the ending of -o decides, and `otherwise` where there is none.
void add_format_option(CLI::App& app, Options& options, Format otherwise) {
  std::vector<std::pair<std::string, Format>> choices;
  std::string help = fmt::format("default: by the ending of -o's FILE, else {}", info_of(otherwise).name);
  for (const FormatInfo& info : all_formats()) {
    choices.emplace_back(info.name, info.format);
    fmt::format_to(std::back_inserter(help), "\n{} ({}): {}", info.name, fmt::join(info.suffixes, ", "), info.purpose);
  }
  add_choice<Format>(app, "-f,--format", options.format, std::move(choices), help);
}

}  // namespace

void add_output_options(CLI::App& app, Options& options) {
  app.add_option("-o,--output", options.output, "write to a file instead of stdout; FILE.gz is compressed")
      ->type_name("FILE")
      ->check(not_empty());
  add_format_option(app, options, Format::text);
  add_choice<ColorMode>(app, "--color", options.color,
                        {{"auto", ColorMode::automatic}, {"always", ColorMode::always}, {"never", ColorMode::never}},
                        "colours in text; auto (default): on a terminal, unless NO_COLOR is set");
  add_events_option(app, options);
}

void add_trace_options(CLI::App& app, Options& options) {
  app.add_option("-o,--output", options.output, "the file to write, - for stdout; FILE.gz is compressed")
      ->type_name("FILE")
      ->check(not_empty())
      ->required();
  add_format_option(app, options, Format::fxt);
  add_events_option(app, options);
}

void add_report_options(CLI::App& app, Options& options) {
  app.add_option("-i,--input", options.target,
                 "analyse a recording (.fxt, - for stdin), PID.events or the ring of a pid")
      ->type_name("FILE")
      ->check(not_empty());
  app.add_option("-o,--output", options.output, "write to a file instead of stdout")
      ->type_name("FILE")
      ->check(not_empty());
  add_choice<bool>(app, "-f,--format", options.json_report, {{"text", false}, {"json", true}},
                   "for people (default) or for programs");
}

void add_latency_options(CLI::App& app, Options& options) {
  app.add_option("--phase", options.phase, "spans of one phase instead of pauses, e.g. minor, major_slice")
      ->type_name("NAME");
  add_min_option(app, options);
  add_time_option(app, "--interval", options.interval,
                  "a report each time this has passed, too: of that time, and of all so far");
  app.add_flag("--full", options.all_percentiles, "all percentiles of each process and domain, too");
  app.add_flag("--olly", options.olly_pauses,
               "count as pauses only what olly latency counts: major, stw_leader and interrupt_remote");
}

void add_min_option(CLI::App& app, Options& options) {
  add_time_option(app, "--min", options.min, "only those that last this long or longer");
}

void add_decode_options(CLI::App& app, Options& options) {
  app.add_option("--ocaml-version", options.ocaml_version, "name events as this version of OCaml does, e.g. 5.2")
      ->type_name("X.Y")
      ->check(CLI::Validator(
          [](const std::string& version) {
            return family_of_version(version) ? std::string() : "'" + version + "' is no version of OCaml 5, e.g. 5.2";
          },
          ""));
}

void add_kernel_options(CLI::App& app, Options& options) {
  add_choice<Sched>(app, "--sched", options.sched, {{"off", Sched::off}, {"ocaml", Sched::ocaml}, {"all", Sched::all}},
                    "scheduler events of no thread, of threads of OCaml processes (default), of every thread");
  add_choice<Drain>(
      app, "--drain", options.drain, {{"off", Drain::off}, {"known", Drain::known}, {"all", Drain::all}},
      "save in the kernel what rings hold that may be gone before they are read: of no program; of those that end and "
      "whose functions are probed, and of those that exec another, from Linux 6.10 on (default); of all, which costs "
      "every mmap() and munmap() of the host 0.2 µs (and before Linux 6.4 its page faults, too)");
  CLI::Option* const ringless = app.add_flag("--ringless", options.ringless,
                                             "trace programs that run with events off, too, by probes: each event "
                                             "costs them 1.3 to 1.6 µs (with a ring 0.03)");
  app.add_option("--ringless-limit", options.ringless_limit,
                 "events per second, in any tenth of one (default 100000), beyond which a program's probes are taken "
                 "off for a while")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{10}, std::uint64_t{1'000'000'000}))
      ->needs(ringless);
  app.add_flag("--history", options.history, "begin with what rings held before they were found");
  app.add_option_function<std::string>(
         "--buffer",
         [&options](const std::string& text) {
           options.buffer_bytes = parse_size(text);
           if (!options.buffer_bytes)
             throw CLI::ValidationError("--buffer", "'" + text + "' is no size; e.g. 512k, 64M");
         },
         "memory for scheduler events between two reads, all cpus together (default 1M for each cpu, 4M to 64M)")
      ->type_name("SIZE");
}

void add_message_options(CLI::App& app, Options& options) {
  app.add_flag("-q,--quiet", options.quiet, "no messages but errors");
  app.add_flag("-v,--verbose", options.verbose, "also what the kernel interface says");
}

int report(const Error& error) {
  fmt::print(stderr, "rtev-bpf: {}\n", error.message());
  if (!error.hint.empty()) fmt::print(stderr, "hint: {}\n", error.hint);
  return exit_failure;
}

}  // namespace rtev::cli
