// SPDX-License-Identifier: MIT
// rtev-bpf: traces every OCaml 5 process of this host, together with what the kernel does to its threads.

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string_view>

#include "analysis/pauses/pauses_sink.hpp"
#include "base/escape.hpp"
#include "cli/options.hpp"

namespace rtev::cli {
namespace {

constexpr const char* description =
    "Traces every OCaml 5 process of this host: runtime events (GC phases, counters, lifecycle,\n"
    "user events) in order of time with what the scheduler does to the same threads.\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf                          every OCaml process, until Ctrl-C\n"
    "  rtev-bpf -p 1234 -d 5s            one process, five seconds\n"
    "  rtev-bpf -n 'web*' --sched off    by name, without scheduler events\n"
    "  rtev-bpf -f jsonl -o trace.jsonl  one JSON object a line, into a file\n"
    "  rtev-bpf -- ./server --port 80    start a program with runtime events on, and follow it\n"
    "  rtev-bpf record -d 5s -o trace.fxt  record for ui.perfetto.dev, and to look at it again later\n"
    "  rtev-bpf pauses -d 10s            the worst pauses, and what is to blame for them\n"
    "  rtev-bpf ps                       which OCaml processes are there";

constexpr const char* footer =
    "Programs write runtime events when they are started with OCAML_RUNTIME_EVENTS_START=1 or call\n"
    "Runtime_events.start (). Data goes to stdout, messages and the summary to stderr. The first Ctrl-C ends with a\n"
    "summary, the second one at once. CMD gets INT, TERM, HUP, QUIT, USR1 and USR2 that are sent to rtev-bpf.\n"
    "With -d the trace of CMD ends before CMD does. Exit status: 0, 1 after an error, 2 for wrong usage, or that of "
    "CMD.";

constexpr const char* record_footer =
    "An .fxt file is a recording: dump, convert and -i read it. The other formats are exports and cannot be read "
    "back.\n"
    "fxt, json and pftrace open in ui.perfetto.dev: a group a process, a row a thread with its GC spans and what the\n"
    "scheduler did to it. If the recording stops for any reason, FILE is complete up to a second before.";

constexpr const char* latency_footer =
    "A pause is the outermost runtime span of a domain. The percentile P of N pauses is the one whose rank in order "
    "is\n"
    "nearest to P % of N, to three digits, as olly latency has it. ON-CPU, RUNNABLE and BLOCKED are distributions of\n"
    "their own: what stands in one line need not be of one pause. In the last table ONCPU, RUNBL and BLOCK are shares\n"
    "of TOTAL. ! behind a line: something is missing, and counts and totals are at least what is said.";

constexpr const char* pauses_footer =
    "A pause is the outermost runtime span of a domain. With --sched all the report tells exactly who had the cpu\n"
    "that a thread waited for; else only whom OCaml threads made way for or came after, which costs less.";

constexpr const char* stats_footer =
    "GC is the time in pauses, GC% its share of the domains' time (the sum of WALL over the domains). STW LED and\n"
    "FOLLOWED are stop-the-world sections that a domain led, and took part in for another one. Words are what\n"
    "collections found, in words of 8 bytes. + behind a figure: it is at least that much, and it is said why.";

const char* footer_of(std::string_view command) {
  if (command == "record") return record_footer;
  if (command == "latency") return latency_footer;
  if (command == "pauses") return pauses_footer;
  if (command == "stats") return stats_footer;
  return "";
}

/// Subcommands that trace.
bool takes_a_command(const CLI::App& app) {
  static constexpr std::string_view names[] = {"record", "latency", "pauses", "stats"};
  return std::ranges::find(names, app.get_name()) != std::end(names);
}

/// Tells how to start a command, which CLI11 does not know of.
class Help final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_name() == "record") return "Usage: rtev-bpf record -o FILE [OPTIONS] [-- CMD ARG...]\n";
    if (takes_a_command(*app)) return "Usage: rtev-bpf " + app->get_name() + " [OPTIONS] [-- CMD ARG...]\n";
    if (app->get_parent() != nullptr) return CLI::Formatter::make_usage(app, name);
    return "Usage: rtev-bpf [OPTIONS] [-- CMD ARG...]\n       rtev-bpf record -o FILE [OPTIONS] [-- CMD ARG...]\n"
           "       rtev-bpf latency|pauses|stats [OPTIONS] [-- CMD ARG...]\n"
           "       rtev-bpf convert|dump|ps|doctor [OPTIONS]\n";
  }
};

/// CLI11 must not see what follows "--": those are the command's own arguments.
std::vector<std::string> take_command(std::vector<std::string>& arguments) {
  const auto separator = std::ranges::find(arguments, "--");
  if (separator == arguments.end()) return {};
  std::vector<std::string> command(separator + 1, arguments.end());
  arguments.erase(separator, arguments.end());
  return command;
}

/// What is wrong, in the order it was typed: CLI11 tells what it did not expect from the end.
std::string explain(const CLI::App& app, const CLI::ParseError& error, const Options& options) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return error.what();
  const auto unexpected = app.remaining(true);
  const auto first = std::ranges::find_first_of(options.arguments, unexpected);
  return "unexpected argument '" + escaped(first != options.arguments.end() ? *first : unexpected.front()) +
         "'\nhint: rtev-bpf --help; to start a program under the tracer put -- before it";
}

int usage_error(const CLI::App& app, const CLI::ParseError& error, const Options& options) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
  const std::string text = explain(app, error, options);
  fmt::print(stderr, "rtev-bpf: {}\n{}", text, text.contains("hint:") ? "" : "hint: rtev-bpf --help\n");
  return exit_usage;
}

/// Options in front of a subcommand would be taken for the live stream's and have no effect.
void refuse_misplaced_options(const CLI::App& app) {
  if (app.get_subcommands().empty()) return;
  const std::string command = app.get_subcommands().front()->get_name();
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    throw CLI::ParseError(fmt::format("{} in front of {}\nhint: options of {} go behind it: rtev-bpf {} --help",
                                      option->get_name(), command, command, command),
                          CLI::ExitCodes::ExtrasError);
  }
}

int run(int argc, char** argv) {
  Options options;
  options.arguments.assign(argv, argv + argc);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool has_separator = std::ranges::find(arguments, "--") != arguments.end();
  options.command = take_command(arguments);

  CLI::App app(description, "rtev-bpf");
  app.footer(footer);
  app.formatter(std::make_shared<Help>());
  app.set_version_flag("--version", std::string("rtev-bpf ") + RTEV_VERSION, "print the version");
  app.set_help_flag("-h,--help", "print this help");
  app.require_subcommand(0, 1);
  add_process_options(app, options);
  add_output_options(app, options);
  add_kernel_options(app, options);
  add_decode_options(app, options);
  add_message_options(app, options);

  CLI::App* ps = app.add_subcommand("ps", "list OCaml 5 processes: version, ring, domains, events per second");
  add_process_options(*ps, options);
  CLI::App* record = app.add_subcommand("record", "write the stream to a file for viewers, and for later");
  add_trace_options(*record, options);
  add_process_options(*record, options);
  add_kernel_options(*record, options);
  add_decode_options(*record, options);
  add_message_options(*record, options);
  CLI::App* convert = app.add_subcommand("convert", "a recording, or a ring file, in another format");
  add_target(*convert, "IN", options);
  add_trace_options(*convert, options);
  add_process_options(*convert, options);
  add_decode_options(*convert, options);
  add_message_options(*convert, options);
  CLI::App* dump = app.add_subcommand("dump", "show a recording, a ring file, or what a live process's ring holds now");
  add_target(*dump, "TARGET", options);
  add_output_options(*dump, options);
  add_process_options(*dump, options);
  add_decode_options(*dump, options);
  add_message_options(*dump, options);
  CLI::App* latency = app.add_subcommand("latency", "how long pauses are: percentiles, and what threads did in them");
  add_latency_options(*latency, options);
  CLI::App* pauses = app.add_subcommand("pauses", "the worst pauses, each taken apart, and what is to blame");
  pauses->add_option("--top", options.top, "how many (default 10)")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, PausesOptions::max_top));
  add_min_option(*pauses, options);
  CLI::App* stats = app.add_subcommand("stats", "what the garbage collector did, by process and domain");
  for (CLI::App* analysis : {latency, pauses, stats}) {
    add_report_options(*analysis, options);
    add_process_options(*analysis, options);
    add_kernel_options(*analysis, options);
    add_decode_options(*analysis, options);
    add_message_options(*analysis, options);
    // Of a recording they cannot change anything any more.
    for (const char* tracing : {"--sched", "--drain", "--ringless", "--history", "--buffer"})
      analysis->get_option(tracing)->excludes(analysis->get_option("--input"));
  }
  CLI::App* doctor = app.add_subcommand("doctor", "what this host allows, what is missing and what to do about it");
  for (CLI::App* command : {record, latency, pauses, stats, convert, dump, ps, doctor}) {
    command->set_help_flag("-h,--help", "print this help");
    command->footer(footer_of(command->get_name()));
  }

  try {
    std::ranges::reverse(arguments);  // CLI11 takes a vector from its end
    app.parse(arguments);
    refuse_misplaced_options(app);
    if (has_separator && options.command.empty())
      throw CLI::ParseError("no command after --", CLI::ExitCodes::RequiredError);
    if (!options.command.empty() && !app.get_subcommands().empty() && !takes_a_command(*app.get_subcommands().front()))
      throw CLI::ParseError("a command after -- goes with no subcommand", CLI::ExitCodes::ExtrasError);
    if (!options.command.empty() && !options.pids.empty())
      throw CLI::ParseError("-p and a command after -- exclude each other", CLI::ExitCodes::ExcludesError);
    if (!options.command.empty() && !options.target.empty())
      throw CLI::ParseError("-i and a command after -- exclude each other", CLI::ExitCodes::ExcludesError);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error, options);
  }

  if (ps->parsed()) return run_ps(options);
  if (record->parsed()) return run_record(options);
  if (latency->parsed()) return run_latency(options);
  if (pauses->parsed()) return run_pauses(options);
  if (stats->parsed()) return run_stats(options);
  if (convert->parsed()) return run_convert(options);
  if (dump->parsed()) return run_dump(options);
  if (doctor->parsed()) return run_doctor(options);
  return run_live(options);
}

}  // namespace
}  // namespace rtev::cli

int main(int argc, char** argv) {
  try {
    return rtev::cli::run(argc, argv);
  } catch (const std::exception& error) {
    // Nothing of ours throws; memory can run out.
    fmt::print(stderr, "rtev-bpf: cannot go on: {}\n", error.what());
    return rtev::cli::exit_failure;
  }
}
