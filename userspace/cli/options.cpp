// SPDX-License-Identifier: MIT
#include "cli/options.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iterator>
#include <utility>

#include "base/option_types.hpp"
#include "base/parse.hpp"
#include "cli/output_name.hpp"
#include "rtev/names.hpp"
#include "stream/filter.hpp"
#include "stream/program_key.hpp"

namespace rtev::cli {
namespace {

/// Values of --format. People who know that it is one object per line look for the second.
constexpr const char *json_word = "json", *jsonl_word = "jsonl";

// Titles of groups in --help. A function sets that of the options it adds.
constexpr const char *output_group = "Output", *tracing_group = "Tracing";

/// With less, bursts of a few fast programs would have to wait.
constexpr std::size_t min_memory_limit = std::size_t{16} << 20;

/// A smaller file would hold little but the names of processes and events.
constexpr std::uint64_t min_file_bytes = std::uint64_t{256} << 10;

const std::string inputs = "a recording (.fxt; - for stdin), a ring file (PID.events), or the id of a process";

/// Catches "$UNSET" in a script, which must not mean stdout.
constexpr const char* empty_name = "the file name is empty";
CLI::Validator not_empty() {
  return {[](const std::string& text) { return std::string(text.empty() ? empty_name : ""); }, ""};
}

CLI::Option* add_file(CLI::App& app, const char* name, std::string& path, const std::string& help,
                      ArgumentValues values) {
  CLI::Option* const option = app.add_option(name, path, help)->check(not_empty());
  set_values(app, *option, std::move(values));
  return option;
}

ArgumentValues input_values() {
  return {.suffixes = {".fxt", ".fxt.gz", ".events"}, .pids = true};
}

/// Without a name -o stands for one of its own: what follows is another option, or nothing.
CLI::Option* add_output(CLI::App& app, std::string& path, const std::string& help, std::vector<std::string> suffixes) {
  return add_file(app, "-o,--output", path, help, {.suffixes = std::move(suffixes)})
      ->type_name("[FILE]")
      ->expected(0, 1)
      ->default_str(unnamed_file);
}

/// Ends the parsing with a usage error.
[[noreturn]] void refuse(const Error& error) {
  throw CLI::ParseError(error.message() + "\nhint: " + error.hint, CLI::ExitCodes::ValidationError);
}

/// CLI11 does not check an empty name where none is needed.
void check_output_name(const CLI::App& app, const std::string& path) {
  if (app.count("--output") > 0 && path.empty()) throw CLI::ValidationError("--output", empty_name);
}

/// After the parsing: checks the name of a stream's file, and gives it one if -o has none.
void complete_output(const CLI::App& app, OutputOptions& options, Format otherwise) {
  check_output_name(app, options.path);
  const Format unnamed = options.format.value_or(options.all ? Format::text : Format::fxt);
  if (options.path == unnamed_file) options.path = default_file_name(info_of(unnamed).suffixes.front());
  const auto format = format_of_output(options.path, options.format, otherwise);
  if (!format) refuse(format.error());
  if (!options.label.empty() && *format != Format::csv && *format != Format::jsonl)
    throw CLI::ValidationError("--label",
                               fmt::format("{} has no label\nhint: -f csv or -f json", info_of(*format).name));
}

/// The same for a report.
void complete_report(const CLI::App& app, ReportOptions& options) {
  check_output_name(app, options.output);
  const auto asked = app.count("--format") > 0 ? std::optional(options.json) : std::nullopt;
  if (options.output == unnamed_file) options.output = default_file_name(options.json ? ".json" : ".txt");
  const auto is_json = is_json_output(options.output, asked, options.file_suffixes);
  if (!is_json) refuse(is_json.error());
  options.json = *is_json;
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
  CLI::Option* const option = app.add_option("--events", events,
                                             fmt::format("only events of these kinds or names, e.g. 'user,minor*'\n"
                                                         "kinds: {}; names may have wildcards; losses are always shown",
                                                         fmt::join(EventFilter::all_kinds(), ", ")))
                                  ->type_name("LIST")
                                  ->check(event_list());
  set_values(app, *option, {.words = EventFilter::all_kinds(), .is_list = true});
}

void add_label_option(CLI::App& app, std::string& label) {
  app.add_option("--label", label,
                 "of csv and json: a word for the whole stream, e.g. a release; in csv it is a column")
      ->type_name("TEXT");
}

/// Without the option the suffix of -o decides, and `otherwise` if it has none.
void add_format(CLI::App& app, std::optional<Format>& format, Format otherwise) {
  std::vector<std::pair<std::string, Format>> choices;
  std::string help =
      fmt::format("format of the output (default: by the suffix of FILE, else {})",
                  otherwise == Format::text ? "brief on a terminal and text elsewhere" : info_of(otherwise).name);
  for (const FormatInfo& info : all_formats()) {
    // Everywhere else it is json.
    const std::string_view word = info.format == Format::jsonl ? json_word : info.name;
    choices.emplace_back(word, info.format);
    help += fmt::format("\n{} ({}): {}", word, fmt::join(info.suffixes, ", "), info.purpose);
  }
  const auto refuse_compression = [](const std::string& text) {
    constexpr const char* refusal = "compression is not a format\nhint: to compress, add the suffix .gz: -o FILE.gz";
    return std::string(text.ends_with(".gz") ? refusal : "");
  };
  add_choice<Format>(app, "-f,--format", format, std::move(choices), help, {{jsonl_word, Format::jsonl}})
      ->check(refuse_compression);
}

/// --from, --to, --around
std::vector<CLI::Option*> add_window_options(CLI::App& app, Window& window) {
  const auto add = [&app](const char* name, std::optional<TimePoint>& point, const std::string& help) {
    const auto accept = [&point](const std::string& text) {
      point = TimePoint::parse(text);
      return point.has_value();
    };
    return add_parsed_option(app, name, "TIME", "a time, e.g. 1.5 (seconds since the beginning), 200ms, 14:03:22.125",
                             accept, help);
  };
  app.option_defaults()->group("Selection");
  CLI::Option* const from = add("--from", window.from,
                                "of a recording leave out what is before this: seconds since its beginning, or a time "
                                "of day such as 14:03:22.125");
  CLI::Option* const to = add("--to", window.to, "of a recording leave out what is after this");
  CLI::Option* const around = add("--around", window.around, "of a recording only the 100 ms before and after this");
  around->excludes(from)->excludes(to);
  return {from, to, around};
}

/// Takes numbers from `least` on.
void add_id_option(CLI::App& app, const char* name, std::vector<std::int32_t>& ids, const char* type,
                   const std::string& help, std::int32_t least) {
  app.add_option(name, ids, help)
      ->type_name(type)
      ->check(expects(fmt::format("a number from {} on", least), [least](const std::string& text) {
        return parse_number<std::int32_t>(text).value_or(-1) >= least;
      }));
}

void add_name_option(CLI::App& app, std::vector<std::string>& names, const std::string& flags = "-n,--name") {
  app.option_defaults()->group("Selection");
  CLI::Option* const option =
      app.add_option(
             flags, names,
             "only processes with this name, e.g. server, 'web*', or shop/main.exe for one of several; repeatable")
          ->type_name("GLOB");
  set_values(app, *option, {.process_names = true});
}

/// -o and -f of a report
void add_report_output(CLI::App& app, ReportOptions& options) {
  app.option_defaults()->group(output_group);
  add_output(app, options.output,
             "write the report to FILE instead of stdout (without a name: rtev-HOST-TIME.txt or .json)",
             report_suffixes(options.file_suffixes));
  add_json_option(app, options.json);
  app.get_option("--format")->description("text (default) for people, json for programs (default if FILE ends so)");
}

void add_stack_options(CLI::App& app, StackOptions& options, StackUse use) {
  constexpr unsigned max_rate = 10'000;
  const auto with_stacks = [use](CLI::Option* option, CLI::Option* stacks) {
    if (use == StackUse::optional) option->needs(stacks);
  };
  CLI::Option* stacks = nullptr;
  if (use == StackUse::optional) {
    stacks = app.add_flag_callback(
        "--stacks", [&options] { options.on_cpu = options.off_cpu = options.allocations = true; },
        "also take stacks of the threads: many times a second while they run, where they sleep, and where they "
        "allocate");
    with_stacks(add_time_option(app, "--off-cpu", options.off_cpu_min,
                                "with --stacks: those of threads that sleep for this time and longer (default: 1ms)"),
                stacks);
  }
  with_stacks(add_number_option<unsigned>(app, "--stack-rate", options.rate_hz, 1, max_rate,
                                          "take N stacks per second of CPU time (default: 99)"),
              stacks);
}

}  // namespace

void add_pid_option(CLI::App& app, std::vector<std::int32_t>& pids) {
  app.option_defaults()->group("Selection");
  CLI::Option* const option = app.add_option("-p,--pid", pids, "only the process with this id; repeatable")
                                  ->type_name("PID")
                                  ->check(expects("a process id", [](const std::string& text) {
                                    return parse_number<std::int32_t>(text).value_or(0) > 0;
                                  }));
  set_values(app, *option, {.pids = true});
}

void add_process_options(CLI::App& app, ProcessOptions& options, const std::string& name_flags) {
  add_pid_option(app, options.pids);
  add_name_option(app, options.names, name_flags);
  add_time_option(app, "-d,--duration", options.duration,
                  "stop after this time, e.g. 500ms, 5s, 2m (default: at Ctrl-C)");
}

void add_common_options(CLI::App& app, ReadOptions& options) {
  app.option_defaults()->group("Other");
  app.add_option("--ocaml-version", options.ocaml_version,
                 "name events as this version of OCaml does, e.g. 5.2 (default: detect the version)")
      ->type_name("X.Y")
      ->check(expects("a version of OCaml 5, e.g. 5.2",
                      [](const std::string& text) { return family_of_version(text).has_value(); }));
  app.add_flag("-q,--quiet", options.quiet, "print errors only");
}

void add_trace_options(CLI::App& app, TraceOptions& options, StackUse stacks) {
  app.option_defaults()->group(tracing_group);
  add_choice<rtev_sched_mode>(app, "--sched", options.sched,
                              {{"off", RTEV_SCHED_OFF}, {"ocaml", RTEV_SCHED_OCAML}, {"all", RTEV_SCHED_ALL}},
                              "scheduler events to trace\n"
                              "off: none\n"
                              "ocaml (default): those of the threads of OCaml processes\n"
                              "all: those of all threads");
  CLI::Option* const enable =
      app.add_flag("--enable", options.enable,
                   "switch events on in running programs, for the time of the trace\n"
                   "as rtev-bpf enable does, also of programs that start later; at the end they are switched off");
  app.add_flag("--leave-on", options.leave_on, "with --enable: do not switch them off at the end")->needs(enable);
  app.add_flag("--allow-confined", options.allow_confined,
               "with --enable: also programs with a filter of system calls or a security profile: if its rules do not "
               "allow a program to make its ring, the program ends")
      ->needs(enable);
  app.add_flag("--allow-readable", options.allow_readable,
               "with --enable: also programs whose directory for the ring may be read or searched by other users, who "
               "could keep the program from ending")
      ->needs(enable);
  add_number_option<std::uint32_t>(app, "--enable-rate", options.enable_rate, 1, 1000,
                                   "with --enable: switch on at most N programs per second (default: 50)")
      ->needs(enable);
  CLI::Option* const ringless =
      app.add_flag("--ringless", options.ringless,
                   "also trace programs that run with events off, by uprobes: an event costs them 1.3 to 1.6 µs, not "
                   "0.03 µs. With --enable: only those whose events cannot be switched on");
  add_number_option<std::uint64_t>(app, "--ringless-limit", options.ringless_limit, 10, 1'000'000'000,
                                   "remove the probes of a program if it emits more than N events per second, measured "
                                   "over 100 ms, and try again after a pause (default: 100000)")
      ->needs(ringless);
  add_stack_options(app, options.stacks, stacks);
  app.add_flag("--history", options.history,
               "also trace the events that a ring holds already when it is found (default: later ones only)");
  add_choice<rtev_save_mode>(
      app, "--save-rings", options.save_rings,
      {{"off", RTEV_SAVE_OFF}, {"known", RTEV_SAVE_KNOWN}, {"all", RTEV_SAVE_ALL}},
      "have the kernel copy the rings of short programs, which rtev-bpf may be too late to read\n"
      "off: none\n"
      "known: when a program exits whose binary has run before; since Linux 6.10 also when it executes another\n"
      "all: always; costs each mmap() and munmap() on the host 0.2 µs, before Linux 6.4 also each page "
      "fault\n"
      "(default: all for CMD since Linux 6.4, else known)");
  const auto accept_size = [&options](const std::string& text) {
    options.buffer_bytes = parse_size(text);
    return options.buffer_bytes.has_value();
  };
  add_parsed_option(
      app, "--buffer", "SIZE", "a size, e.g. 512k, 64M", accept_size,
      "memory for scheduler events, for all CPUs together (default: 1M per CPU, at least 4M, at most 64M)");
  const auto accept_limit = [&options](const std::string& text) {
    options.memory_limit = parse_size(text).value_or(0);
    return options.memory_limit >= min_memory_limit;
  };
  add_parsed_option(app, "--memory-limit", "SIZE", "a size of at least 16M, e.g. 64M, 1G", accept_limit,
                    fmt::format("memory for events, rings and reports, without the buffers of the kernel (default: "
                                "{}M). Events and rings that do not fit are lost, and counted",
                                options.memory_limit >> 20));
  add_number_option<int>(
      app, "--priority", options.priority, -20, 19,
      "nice value of the thread that reads events (default: -20, the highest priority: on a busy host "
      "events are lost with less)");
  app.add_flag("-v,--verbose", options.verbose,
               "also print messages of libbpf, and at the end what was read of each process");
}

void add_output_options(CLI::App& app, OutputOptions& options) {
  app.option_defaults()->group(output_group);
  add_output(app, options.path,
             "write to FILE instead of stdout\n"
             "without a name: to rtev-HOST-TIME.fxt; FILE.gz is compressed",
             stream_suffixes());
  add_format(app, options.format, Format::text);
  add_label_option(app, options.label);
  add_choice<ColorMode>(app, "--color", options.color,
                        {{"auto", ColorMode::automatic}, {"always", ColorMode::always}, {"never", ColorMode::never}},
                        "colours in text (default: auto, that is on a terminal unless NO_COLOR is set)");
  app.add_flag("--all", options.all, "every event has a line, also on a terminal: the same as -f text")
      ->excludes(app.get_option("--format"));
  app.option_defaults()->group("Selection");
  add_events_option(app, options.events);
  add_time_option(app, "--min", options.min, "lines only for pauses and spans of this length and longer, e.g. 5ms");
  add_id_option(app, "--domain", options.threads.domains, "N", "only events of this domain; repeatable", 0);
  add_id_option(app, "--tid", options.threads.tids, "TID",
                "only events of this thread; repeatable. Which domain it runs is known from scheduler events", 1);
  app.final_callback([&app, &options] { complete_output(app, options, Format::text); });
}

void add_recording_options(CLI::App& app, OutputOptions& options) {
  app.option_defaults()->group(output_group);
  add_output(app, options.path,
             "the file to write (default: rtev-HOST-TIME with the suffix of the format), or - for stdout; FILE.gz is "
             "compressed",
             stream_suffixes());
  add_format(app, options.format, Format::fxt);
  add_label_option(app, options.label);
  add_events_option(app, options.events);
  app.final_callback([&app, &options] {
    if (app.count("--output") == 0) options.path = unnamed_file;
    complete_output(app, options, Format::fxt);
  });
}

CLI::Option* add_min_free_option(CLI::App& app, FreeSpaceFloor& floor, const std::string& help) {
  const auto accept = [&floor](const std::string& text) {
    const auto share = parse_percentage(text);
    const auto bytes = share ? std::optional<std::uint64_t>(0) : parse_file_size(text);
    if (!bytes) return false;
    floor = {.share = share.value_or(0), .bytes = *bytes};
    return true;
  };
  return add_parsed_option(app, "--min-free", "SPACE", "a size or a percentage, e.g. 500M, 10%, 0", accept, help);
}

void add_disk_options(CLI::App& app, DiskOptions& options, bool always_file) {
  constexpr double default_share = 0.05;
  options.min_free = {.share = default_share};
  app.option_defaults()->group(output_group);
  CLI::Option* const file = app.get_option("--output");
  const auto accept_max = [&options](const std::string& text) {
    const auto bytes = parse_file_size(text);
    options.max_bytes = bytes.value_or(0);
    return bytes && *bytes >= min_file_bytes;
  };
  CLI::Option* const max_size = add_parsed_option(
      app, "--max-size", "SIZE", "a size of at least 256k, e.g. 512k, 64M, 20G", accept_max,
      "end when FILE has this size, or with --max-files begin the next file. A file may become larger by what is in "
      "memory at that time");
  if (!always_file) max_size->needs(file);
  add_number_option<std::size_t>(app, "--max-files", options.max_files, 2, 1000,
                                 "with --max-size: rename FILE.fxt to FILE.1.fxt, that one to FILE.2.fxt and so on, "
                                 "and begin FILE.fxt anew; keep N files. Each is complete in itself")
      ->needs(max_size);
  CLI::Option* const min_free = add_min_free_option(
      app, options.min_free, "end when less than this is free on the disk of FILE (default: 5%); 0: never");
  if (!always_file) min_free->needs(file);
}

CLI::Option* add_selected_input(CLI::App& app, std::string& input, ReadOptions& options,
                                const std::string& name_flags) {
  CLI::Option* const option =
      add_file(app, "-i,--input", input, "analyse this instead of tracing: " + inputs, input_values())
          ->type_name("INPUT");
  add_process_options(app, options, name_flags);
  app.get_option("--duration")
      ->description(
          "stop after this time, e.g. 500ms, 5s, 2m (default: at Ctrl-C); with -i, analyse only the first TIME");
  for (CLI::Option* const window : add_window_options(app, options.window)) window->needs(option);
  return option;
}

void exclude_tracing(CLI::App& app, CLI::Option& input) {
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_group() == tracing_group && !option->check_lname("verbose"))
      input.excludes(app.get_option("--" + option->get_lnames().front()));
  }
}

void add_analysis_options(CLI::App& app, AnalysisOptions& options, StackUse stacks) {
  CLI::Option* const input = add_selected_input(app, options.input, options, "-n,--name");
  add_report_output(app, options);
  const auto accept_limit = [&options](const std::string& text) {
    const auto limit = parse_limit(text);
    if (limit) options.limits.push_back(*limit);
    return limit.has_value();
  };
  app.add_option_function<std::vector<std::string>>(
         "--fail-if", [](const std::vector<std::string>&) {},
         "exit with status 3 if a program exceeds this: pN (percentile of its pauses, spans, stalls or runs of tasks), "
         "max, mean, or gc-share, e.g. "
         "'p99>5ms', 'max>50ms', 'gc-share>20%'; repeatable")
      ->type_name("LIMIT")
      ->check(expects("a limit\nhint: a time with its unit, or a share: 'p99>5ms', 'max>50ms', 'gc-share>20%'",
                      accept_limit));
  add_trace_options(app, options, stacks);
  add_common_options(app, options);
  app.get_option("--verbose")->description("the same as --full; when it traces, also print messages of libbpf");
  exclude_tracing(app, *input);
  app.final_callback([&app, &options] {
    options.full |= options.verbose;
    complete_report(app, options);
  });
}

void add_compare_options(CLI::App& app, CompareOptions& options) {
  const ArgumentValues values{.suffixes = {".fxt", ".fxt.gz"}};
  set_values(app,
             *app.add_option("A", options.before, "a recording (.fxt; - for stdin), made before the change")
                  ->check(not_empty())
                  ->required(),
             values);
  set_values(app,
             *app.add_option("B", options.after, "a recording, made after the change")->check(not_empty())->required(),
             values);
  add_name_option(app, options.names);
  add_time_option(app, "-d,--duration", options.duration,
                  "only the first TIME of each recording, e.g. 500ms, 5s, 2m (default: all)");
  add_window_options(app, options.window);
  app.remove_option(app.get_option("--around"));  // too short to compare
  app.get_option("--from")->description(
      "of each recording leave out what is before this, e.g. the start of programs: seconds since its beginning");
  app.get_option("--to")->description("of each recording leave out what is after this");
  add_report_output(app, options);
  app.option_defaults()->group("Other");
  app.add_flag("-q,--quiet", options.quiet, "print errors only");
  app.final_callback([&app, &options] { complete_report(app, options); });
}

void add_rows_option(CLI::App& app, bool& by_process) {
  app.option_defaults()->group(output_group);
  add_choice<bool>(app, "--by", by_process, {{"program", false}, {"process", true}},
                   fmt::format("a row or a sentence for each program, or for each process\n"
                               "program (default): the processes of a program together, if there are more than {}\n"
                               "process: each process",
                               max_single_processes));
}

void add_json_option(CLI::App& app, bool& json) {
  add_choice<bool>(app, "-f,--format", json, {{"text", false}, {json_word, true}},
                   "text (default) for people, json for programs", {{jsonl_word, true}});
}

void add_min_option(CLI::App& app, std::chrono::nanoseconds& min) {
  add_time_option(app, "--min", min, "leave out pauses shorter than this, e.g. 1ms");
}

void add_input_options(CLI::App& app, CopyOptions& options) {
  add_file(app, "INPUT", options.input, inputs, input_values())->required();
  add_process_options(app, options);
  app.get_option("--duration")->description("only the first TIME of INPUT, e.g. 500ms, 5s, 2m (default: all)");
  add_window_options(app, options.window);
}

}  // namespace rtev::cli
