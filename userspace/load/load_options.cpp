// SPDX-License-Identifier: MIT
#include "load/load_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/help_formatter.hpp"
#include "base/option_types.hpp"
#include "base/parse.hpp"
#include "load/event_clock.hpp"
#include "load/pace.hpp"
#include "rtev/version.hpp"

namespace rtev::load {
namespace {

constexpr std::uint32_t max_processes = 4096;
constexpr std::uint32_t ocaml_rings = 128;
constexpr std::size_t max_name_bytes = 15;  // of a thread, as in /proc/PID/comm

constexpr const char* description =
    "Writes runtime events as OCaml 5 programs do, to test tracers. It reports exactly what it wrote.";

constexpr const char* footer =
    "At the end a JSON object per process, with the events and words of each ring, goes to stdout, and a summary to "
    "stderr. Ctrl-C ends the load early. OCAML_RUNTIME_EVENTS_DIR, OCAML_RUNTIME_EVENTS_PRESERVE and e= in "
    "OCAMLRUNPARAM set defaults, as for OCaml programs.\n"
    "\n"
    "Exit status: 0, 1 after an error, 2 if the command line is wrong.\n"
    "\n"
    "Examples:\n"
    "  rtev-load -d 10s                         one process with one domain, 1000 events per second\n"
    "  rtev-load -P 2 -D 4 -r 250k              two processes of four domains, until Ctrl-C\n"
    "  rtev-load -r max -n 50M --clock cached   as fast as possible; the summary says how fast\n"
    "  rtev-load -P 500 -r 0                    500 processes with rings and no events\n"
    "  rtev-load -P 8 --process-lifetime 5ms    eight short-lived processes at any time";

void add_load_options(CLI::App& app, LoadOptions& options) {
  add_number_option<std::uint32_t>(app, "-P,--processes", options.processes, 1, max_processes,
                                   "number of processes (default: 1)");
  add_number_option<std::uint32_t>(app, "-D,--domains", options.domains, 1, max_domains,
                                   "domains of each process, one thread each (default: 1)");
  const auto accept_rate = [&options](const std::string& text) {
    options.rate = text == "max" ? std::nullopt : parse_count(text);
    return text == "max" || (options.rate && *options.rate <= Pace::max_rate);
  };
  CLI::Option* const rate =
      add_parsed_option(app, "-r,--rate", "RATE", "a rate up to 1G, e.g. 1000, 250k, 2M, max", accept_rate,
                        "events per second of each domain, e.g. 250k, 2M; max: as many as possible; 0: none "
                        "(default: 1000)");
  set_values(app, *rate, {.words = {"max"}});
  CLI::Option* const mix =
      app.add_option_function<std::string>(
             "-m,--mix",
             [&options](const std::string& text) {
               const auto parsed = Mix::parse(text);
               if (!parsed) throw CLI::ValidationError("--mix", parsed.error());
               options.mix = *parsed;
             },
             fmt::format("kinds of events: {}, or all (default); or their shares, e.g. gc=8,counters=2,user=1",
                         fmt::join(Mix::words(), ", ")))
          ->type_name("MIX");
  set_values(app, *mix, {.words = Mix::words(), .is_list = true});
  add_number_option<std::uint64_t>(app, "--seed", options.seed, 0, UINT64_MAX,
                                   "seed of the random events; the same seed gives the same events (default: 1)");
  add_choice<bool>(app, "--clock", options.cached_clock, {{"monotonic", false}, {"cached", true}},
                   "read the clock for each event (default), or for every 64th, with 1 ns between the others: faster, "
                   "but times are late by up to the time of 64 events");
}

void add_ring_options(CLI::App& app, LoadOptions& options) {
  CLI::Option* const directory =
      app.add_option("--directory", options.directory,
                     "the directory for ring files (default: OCAML_RUNTIME_EVENTS_DIR, or a private directory)")
          ->type_name("DIR");
  set_values(app, *directory, {.directories = true});
  app.add_flag("--preserve", options.preserve, "keep the ring files at exit");
  add_number_option<std::uint32_t>(app, "-e,--ring-words-log2", options.log2_words, 6, 24,
                                   "2^N words in each ring (default: 16)");
  add_number_option<std::uint32_t>(
      app, "--rings", options.rings, 1, max_domains,
      "rings in each file, used or not (default: 128 as OCaml, or the number of domains if that is more)");
  add_choice<RingWriter::Format>(app, "--format", options.format,
                                 {{"5.0", RingWriter::Format::before_5_1}, {"5.1", RingWriter::Format::since_5_1}},
                                 "ring files of OCaml 5.0, which have no user events, or of later versions (default)");
  add_choice<Family>(app, "--family", options.family, {{"5.0-5.2", Family::before_5_3}, {"5.3+", Family::since_5_3}},
                     "number phases as these versions do (default: 5.3+, with --format 5.0 5.0-5.2)");
}

void add_run_options(CLI::App& app, LoadOptions& options) {
  add_time_option(app, "-d,--duration", options.duration, "stop after this time, e.g. 500ms, 5s, 2m");
  const auto accept_events = [&options](const std::string& text) {
    options.events = parse_count(text);
    return options.events.value_or(0) > 0;
  };
  add_parsed_option(app, "-n,--events", "N", "a number above zero, e.g. 1000, 2M", accept_events,
                    "stop after exactly N events of each domain, not counting lifecycle events of rings and domains");
  add_time_option(app, "--process-lifetime", options.process_lifetime,
                  "replace each process after this time, or after its -n events, by a new one");
  add_time_option(app, "--domain-lifetime", options.domain_lifetime,
                  "replace each domain but domain 0 after this time by a new one");
  app.add_option("--names", options.names, "names of the processes, used in turn, e.g. webshop,billing")
      ->type_name("NAME,...")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(expects("a name of 1 to 15 bytes",
                      [](const std::string& name) { return !name.empty() && name.size() <= max_name_bytes; }));
  app.add_flag("--wait", options.wait,
               "print \"ready\" when all rings exist, and start when a line or end of file is read from stdin");
  app.add_flag("-q,--quiet", options.quiet, "print errors only");
}

}  // namespace

PlanOptions LoadOptions::plan(std::uint32_t domain) const {
  PlanOptions plan{.seed = seed, .domain = domain, .domains = domains};
  const bool is_first = format == RingWriter::Format::before_5_1;
  plan.mix = mix.value_or(is_first ? Mix::runtime_only() : Mix::all());
  plan.family = family.value_or(is_first ? Family::before_5_3 : Family::since_5_3);
  // Even the smallest ring must have room for several events.
  plan.max_payload = std::min(plan.max_payload, std::uint32_t{1} << std::min(log2_words, 16u));
  return plan;
}

RingWriter::Options LoadOptions::writer(const std::string& in_directory) const {
  return {.directory = in_directory,
          .domains = rings.value_or(std::max(domains, ocaml_rings)),
          .log2_words = log2_words,
          .start = true,
          .preserve = preserve,
          .format = format,
          .family = plan(0).family,
          .clock = cached_clock ? cached_time : exact_time};
}

LoadOptions options_from_environment() {
  const auto asked = RingWriter::Options::from_environment();
  LoadOptions options;
  options.directory = asked.directory;
  options.preserve = asked.preserve;
  options.log2_words = asked.log2_words;
  return options;
}

void set_up_command_line(CLI::App& app, LoadOptions& options) {
  app.name("rtev-load");
  app.description(description);
  app.footer(footer);
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag("--version", std::string("rtev-load ") + RTEV_VERSION, "print the version");
  add_load_options(app, options);
  add_ring_options(app, options);
  add_run_options(app, options);
}

void check_options(const LoadOptions& options) {
  const auto contradiction = [](const std::string& what, const std::string& hint) {
    throw CLI::ParseError(what + "\nhint: " + hint, CLI::ExitCodes::ValidationError);
  };
  if (options.format == RingWriter::Format::before_5_1 && options.mix && options.mix->has_user_events())
    contradiction("--format 5.0 has no user events, which --mix asks for", "--mix gc,counters,alloc");
  if (options.preserve && options.directory.empty())
    contradiction("--preserve needs a directory that is not removed", "--directory DIR");
  if (options.rings.value_or(max_domains) < options.domains)
    contradiction("--rings is less than --domains", "each domain needs a ring of its own");
  if (options.domain_lifetime && options.domains == 1)
    contradiction("--domain-lifetime needs a second domain", "domain 0 lives as long as its process: -D 2");
  if (options.is_idle() && options.events) contradiction("--events is never reached with --rate 0", "omit one of them");
}

}  // namespace rtev::load
