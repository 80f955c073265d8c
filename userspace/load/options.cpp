// SPDX-License-Identifier: MIT
#include "load/options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/choice.hpp"
#include "base/escape.hpp"
#include "base/parse.hpp"
#include "base/quantity.hpp"
#include "load/clock.hpp"
#include "load/pace.hpp"
#include "load/values.hpp"

namespace rtev::load {
namespace {

constexpr std::uint32_t most_processes = 4096;
constexpr std::uint32_t ocaml_rings = 128;
constexpr std::size_t most_name_bytes = 15;

[[noreturn]] void refuse(const std::string& option, const std::string& why) {
  throw CLI::ValidationError(option, why);
}

void add_duration(CLI::App& app, const char* name, std::optional<Options::Duration>& value, const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [&value, name](const std::string& text) {
           value = parse_duration(text);
           if (!value) refuse(name, "'" + escaped(text) + "' is no time above zero; e.g. 500ms, 5s, 2m");
         },
         help)
      ->type_name("TIME");
}

template <typename Number>
void add_number(CLI::App& app, const char* name, Number& value, std::uint32_t least, std::uint32_t most,
                const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [&value, name, least, most](const std::string& text) {
           const auto number = parse_number<std::uint32_t>(text);
           if (!number || *number < least || *number > most)
             refuse(name, fmt::format("'{}' is no number from {} to {}", escaped(text), least, most));
           value = *number;
         },
         help)
      ->type_name("N");
}

}  // namespace

PlanOptions Options::plan(std::uint32_t domain) const {
  PlanOptions plan{.seed = seed, .domain = domain, .domains = domains};
  const bool is_first = format == RingWriter::Format::before_5_1;
  plan.mix = mix.value_or(is_first ? Mix::runtime_only() : Mix::all());
  plan.family = family.value_or(is_first ? Family::before_5_3 : Family::since_5_3);
  // A message has to leave room for others even in the smallest ring.
  plan.largest_payload = std::min(plan.largest_payload, std::uint32_t{1} << std::min(log2_words, 16u));
  return plan;
}

RingWriter::Options Options::writer(const std::string& in_directory) const {
  return {.directory = in_directory,
          .domains = rings.value_or(std::max(domains, ocaml_rings)),
          .log2_words = log2_words,
          .start = true,
          .preserve = preserve,
          .format = format,
          .family = plan(0).family,
          .clock = cached_clock ? cached_time : exact_time};
}

Options options_from_environment() {
  const auto asked = RingWriter::Options::from_environment();
  Options options;
  options.directory = asked.directory;
  options.preserve = asked.preserve;
  options.log2_words = asked.log2_words;
  return options;
}

void add_load_options(CLI::App& app, Options& options) {
  add_number(app, "-P,--processes", options.processes, 1, most_processes, "processes (default 1)");
  add_number(app, "-D,--domains", options.domains, 1, max_rings, "domains of each process, a thread each (default 1)");
  app.add_option_function<std::string>(
         "-r,--rate",
         [&options](const std::string& text) {
           options.rate = text == "max" ? std::nullopt : parse_count(text);
           if (text != "max" && (!options.rate || *options.rate > Pace::most_rate))
             refuse("--rate", "'" + escaped(text) + "' is no rate up to 1G; e.g. 1000, 250k, 2M, max");
         },
         "events a second of each domain, e.g. 250k, 2M; max: as many as it can; 0: none (default 1000)")
      ->type_name("RATE");
  app.add_option_function<std::string>(
         "-m,--mix",
         [&options](const std::string& text) {
           const auto mix = Mix::parse(text);
           if (!mix) refuse("--mix", mix.error());
           options.mix = *mix;
         },
         "gc, counters, alloc, user, spans, custom, or all (default); or shares of them: gc=8,counters=2,user=1")
      ->type_name("MIX");
  app.add_option_function<std::string>(
         "--seed",
         [&options](const std::string& text) {
           const auto number = parse_number<std::uint64_t>(text);
           if (!number) refuse("--seed", "'" + escaped(text) + "' is no number");
           options.seed = *number;
         },
         "another one gives other events, the same one the same (default 1)")
      ->type_name("N");
  add_choice(app, "--clock", options.cached_clock,
             std::vector<std::pair<std::string, bool>>{{"monotonic", false}, {"cached", true}},
             "read the clock for each event (default), or for every 64th and count on from it by 1 ns: faster, "
             "and times lag behind by the time that 64 events take");
}

void add_ring_options(CLI::App& app, Options& options) {
  app.add_option("--directory", options.directory,
                 "where the ring files go (default: OCAML_RUNTIME_EVENTS_DIR, or a private directory)")
      ->type_name("DIR");
  app.add_flag("--preserve", options.preserve, "the files stay");
  add_number(app, "-e,--ring-words-log2", options.log2_words, 6, 24, "2^N words in each ring (default 16)");
  add_number(app, "--rings", options.rings, 1, max_rings,
             "rings in each file, used or not (default 128 as OCaml, or as many as there are domains)");
  add_choice(app, "--format", options.format,
             std::vector<std::pair<std::string, RingWriter::Format>>{{"5.0", RingWriter::Format::before_5_1},
                                                                     {"5.1", RingWriter::Format::since_5_1}},
             "files as OCaml 5.0 makes them, without user events, or as later versions do (default)");
  add_choice(app, "--family", options.family,
             std::vector<std::pair<std::string, Family>>{{"5.0-5.2", Family::before_5_3}, {"5.3+", Family::since_5_3}},
             "number phases as these versions do (default 5.3+; 5.0-5.2 with --format 5.0)");
}

void add_run_options(CLI::App& app, Options& options) {
  add_duration(app, "-d,--duration", options.duration, "end after this time, e.g. 500ms, 5s, 2m");
  app.add_option_function<std::string>(
         "-n,--events",
         [&options](const std::string& text) {
           options.events = parse_count(text);
           if (options.events.value_or(0) == 0)
             refuse("--events", "'" + escaped(text) + "' is no number above zero; e.g. 1000, 2M");
         },
         "end after exactly so many events of each domain; those that tell of rings and domains come on top")
      ->type_name("N");
  add_duration(app, "--process-lifetime", options.process_lifetime,
               "a process ends after this time or its -n events, and a new one takes its place");
  add_duration(app, "--domain-lifetime", options.domain_lifetime,
               "a domain ends after this time, and a new one takes its place; never domain 0");
  app.add_option("--names", options.names, "what the processes are called, in turn, e.g. webshop,billing")
      ->type_name("NAME,...")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(CLI::Validator(
          [](const std::string& name) {
            const bool fits = !name.empty() && name.size() <= most_name_bytes;
            return fits ? std::string() : "'" + escaped(name) + "' has not 1 to 15 bytes, as names of processes do";
          },
          ""));
  app.add_flag("--wait", options.wait,
               "print \"ready\" once all rings are there; begin when a line or the end comes on stdin");
  app.add_flag("-q,--quiet", options.quiet, "no messages but errors");
}

void check_together(const Options& options) {
  const auto contradiction = [](const std::string& what, const std::string& hint) {
    throw CLI::ParseError(what + "\nhint: " + hint, CLI::ExitCodes::ValidationError);
  };
  if (options.format == RingWriter::Format::before_5_1 && options.mix && options.mix->has_user_events())
    contradiction("--format 5.0 has no user events, which --mix asks for", "--mix gc,counters,alloc");
  if (options.preserve && options.directory.empty())
    contradiction("--preserve keeps files in a directory that is not named", "--directory DIR");
  if (options.rings.value_or(max_rings) < options.domains)
    contradiction("--rings is less than --domains", "each domain has a ring of its own");
  if (options.domain_lifetime && options.domains == 1)
    contradiction("--domain-lifetime needs a second domain", "domain 0 lives as long as its process: -D 2");
  if (options.is_idle() && options.events)
    contradiction("--rate 0 writes nothing, --events does", "leave one of them out");
}

}  // namespace rtev::load
