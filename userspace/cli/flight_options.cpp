// SPDX-License-Identifier: MIT
#include "cli/flight_options.hpp"

#include <CLI/CLI.hpp>

#include "base/option_types.hpp"
#include "base/parse.hpp"

namespace rtev::cli {
namespace {

constexpr const char* flight_group = "Flight recorder";
constexpr std::uint64_t min_keep_bytes = std::uint64_t{1} << 20;
constexpr std::size_t max_conditions = 64;

std::uint64_t nanoseconds(std::chrono::nanoseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

}  // namespace

flight::RecorderOptions FlightOptions::recorder() const {
  constexpr std::chrono::nanoseconds default_keep = std::chrono::seconds{30};
  return {.history = {.keep_ns = nanoseconds(keep.value_or(default_keep)), .max_bytes = keep_bytes},
          .conditions = conditions,
          .limits = {.cooldown_ns = nanoseconds(cooldown),
                     .rearm_ns = std::min(nanoseconds(cooldown), flight::TriggerLimits::Options{}.rearm_ns),
                     .max_dumps = max_dumps,
                     .period_ns = nanoseconds(max_dumps_in)},
          .after_ns = nanoseconds(after)};
}

void add_flight_options(CLI::App& app, FlightOptions& options) {
  app.option_defaults()->group(flight_group);
  add_time_option(app, "--keep", options.keep,
                  "keep the last TIME in memory, and write it to a file when a condition (--on) is met, at SIGUSR2, or "
                  "when rtev-bpf snap asks for it (default: 30s with --on)");
  const auto accept_size = [&options](const std::string& text) {
    const auto bytes = parse_file_size(text);
    options.keep_bytes = bytes.value_or(0);
    return bytes && *bytes >= min_keep_bytes;
  };
  add_parsed_option(app, "--keep-size", "SIZE", "a size of at least 1M, e.g. 64M, 1G", accept_size,
                    "memory for what is kept (default: 64M): when it is full, old events are dropped, first those of "
                    "the user with most events. While a dump is written it takes as much again");
  const auto accept_condition = [&options](const std::string& text) {
    auto condition = flight::parse_condition(text);
    if (!condition || options.conditions.size() >= max_conditions) return false;
    options.conditions.push_back(std::move(*condition));
    return true;
  };
  add_parsed_option(app, "--on", "COND",
                    "a condition: pause>50ms, span:NAME>100ms, sched-delay>20ms, heap>2G, gc-share>30%/10s or lost",
                    accept_condition,
                    "write a dump when this is met: 'pause>50ms', 'span:NAME>100ms', 'sched-delay>20ms', 'heap>2G', "
                    "'gc-share>30%/10s', 'lost'. Can be repeated. Conditions count once the recorder has run for "
                    "--keep, or for 10s if --keep is longer")
      ->take_all();
  add_time_option(app, "--after", options.after, "a dump goes on for TIME after its condition was met (default: 2s)");
  app.add_option("--dumps", options.directory,
                 "where dumps go: a directory of yours, which is made if it is missing (default: /var/lib/rtev-bpf for "
                 "root, else ~/.local/state/rtev-bpf)")
      ->type_name("DIR");
  add_time_option(app, "--cooldown", options.cooldown,
                  "after a dump, make no other one for the same program of the same user within TIME (default: 30s). A "
                  "condition that stays true counts once");
  const auto accept_max = [&options](const std::string& text) {
    const std::size_t slash = text.find('/');
    const auto count = parse_number<std::size_t>(text.substr(0, slash));
    const auto in = slash != std::string::npos ? parse_limit_duration(text.substr(slash + 1)) : std::nullopt;
    if (!count || *count == 0 || !in) return false;
    options.max_dumps = *count;
    options.max_dumps_in = *in;
    return true;
  };
  add_parsed_option(
      app, "--max-dumps", "N/TIME", "a number and a time, e.g. 10/1h", accept_max,
      "make at most N dumps in TIME (default: 10/1h), shared equally by the users whose programs run; dumps that "
      "snap or SIGUSR2 ask for do not count");
  const auto accept_disk = [&options](const std::string& text) {
    const auto bytes = parse_file_size(text);
    options.max_disk_bytes = bytes.value_or(0);
    return bytes && *bytes > 0;
  };
  add_parsed_option(app, "--max-disk", "SIZE", "a size, e.g. 500M, 1G", accept_disk,
                    "remove the oldest dumps when all of them take more (default: 1G)");
  app.add_option("--exec", options.program,
                 "run this program after each dump, with the name of the file as its argument and RTEV_DUMP_FILE, "
                 "RTEV_TRIGGER, RTEV_VALUE, RTEV_PID, RTEV_PROGRAM and RTEV_VERDICT in its environment; killed after "
                 "60s")
      ->type_name("PROGRAM");
  app.parse_complete_callback([&app, &options] {
    if (options.is_on()) return;
    for (const CLI::Option* option : app.get_options())
      if (option->get_group() == flight_group && option->count() > 0)
        throw CLI::ParseError(
            option->get_name() + " needs --keep or --on\nhint: without them nothing is kept, and no dump is written",
            CLI::ExitCodes::RequiresError);
  });
}

}  // namespace rtev::cli
