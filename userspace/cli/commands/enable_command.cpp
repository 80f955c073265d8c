// SPDX-License-Identifier: MIT
// rtev-bpf enable and disable: switch the events of running programs on, and off again.
#include <fmt/core.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "base/name_globs.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/messages.hpp"
#include "cli/no_match.hpp"
#include "enable/enabler.hpp"
#include "helper/helper_process.hpp"
#include "helper/process_queries.hpp"
#include "inspect/procfs.hpp"

namespace rtev::cli {
namespace {

using enable::EnableAnswer;
using enable::Enabler;
using enable::Task;

constexpr std::chrono::seconds default_patience{10};

/// What the enabler takes after the last program ran out of patience: it may have to wait for a file system.
constexpr std::chrono::seconds spare_patience{5};

struct EnableOptions : ProcessOptions {
  bool all = false;
  bool dry_run = false;
  bool allow_confined = false, allow_readable = false;
};

constexpr const char* enable_footer =
    "A program that was started without OCAML_RUNTIME_EVENTS_START writes no events. enable makes its runtime start "
    "them, as the program itself could, without a restart. SWITCHING EVENTS ON in rtev-bpf(8) says what is written to "
    "its memory, and what is checked before. disable switches them off again.\n"
    "\n"
    "Exit status: 0 if the events of all these programs are on, else 1.";

constexpr const char* disable_footer =
    "Events that rtev-bpf switched on go off, and the ring's file is removed: the program is as it was. Events that a "
    "program started itself are paused, and its ring stays. enable switches both on again.\n"
    "\n"
    "Exit status: 0 if the events of all these programs are off, else 1.";

/// The processes that are asked about, once each: those with the pids that are given, or of the host, if -n selects
/// them.
/// Of bytecode a helper reads the arguments: they are memory of the process, which may make its reader wait.
bool is_called(const std::vector<std::string>& names, const ProcessStat& stat, std::int32_t pid) {
  const std::string exe = Procfs().exe_path(pid);
  const ProgramNames known{.comm = stat.comm, .exe = exe};
  if (selects_name(names, known) || !may_select_name(names, known)) return selects_name(names, known);
  const auto helper = helper::HelperProcess::start();
  const auto view = helper ? helper::ask_once(*helper, {.pid = pid, .image = true}) : std::nullopt;
  return view && view->stat && selects_name(names, view->image.names());
}

std::vector<std::int32_t> selected(const EnableOptions& options) {
  const Procfs procfs;
  std::vector<std::int32_t> pids = options.pids.empty() ? procfs.pids() : options.pids;
  std::ranges::sort(pids);
  pids.erase(std::ranges::unique(pids).begin(), pids.end());
  std::erase_if(pids, [&](std::int32_t pid) {
    const auto stat = procfs.stat(pid);
    if (stat && !options.names.empty() && !is_called(options.names, *stat, pid)) return true;
    return options.pids.empty() && (!stat || stat->kernel_thread || stat->ending);
  });
  return pids;
}

std::string subject_of(const EnableAnswer& answer) {
  const std::string pid = std::to_string(answer.pid);
  return answer.comm.empty() ? pid : pid + " (" + escaped(answer.comm) + ")";
}

void print_requirements(const EnableAnswer& answer) {
  for (const enable::Requirement& requirement : answer.requirements) {
    fmt::print("  {:<7}  {:<30}  {}\n", requirement.is_met ? "ok" : "MISSING", requirement.what,
               escaped(requirement.found));
    if (!requirement.hint.empty()) fmt::print("  {:<7}  {:<30}  hint: {}\n", "", "", requirement.hint);
  }
}

void print_success(const EnableAnswer& answer, std::string_view done) {
  fmt::print("{}: {}", subject_of(answer), done);
  if (answer.took_ns != 0) fmt::print(" after {:.1f} ms", static_cast<double>(answer.took_ns) / 1e6);
  if (!answer.ring_path.empty())
    fmt::print(", ring {}{}", escaped(answer.ring_path), answer.task == Task::disable ? " stays until it ends" : "");
  fmt::print("\n");
}

std::string_view done_text(const EnableAnswer& answer) {
  if (answer.task == Task::disable)
    return answer.result == EnableResult::done ? "events off" : "events are off already";
  if (answer.task == Task::check)
    return answer.result == EnableResult::nothing_to_do ? "events are on already" : "events can be switched on";
  if (answer.result == EnableResult::nothing_to_do) return "events are on already";
  return answer.result == EnableResult::resumed ? "events resumed" : "events on";
}

void refuse(Task task, std::string subject, std::string why, std::string hint) {
  report({.what = fmt::format("cannot switch {} the events of", task == Task::disable ? "off" : "on"),
          .subject = std::move(subject),
          .why = std::move(why),
          .hint = std::move(hint)});
}

/// In a container processes have other ids.
constexpr const char* listed_hint = "rtev-bpf ps lists OCaml processes, by the ids that they have here";

std::string hint_of_answer(const EnableAnswer& answer) {
  const bool is_wrong = answer.result == EnableResult::not_ocaml || answer.result == EnableResult::gone;
  return answer.hint.empty() && is_wrong ? listed_hint : answer.hint;
}

/// Prints an answer. False if it is not what was asked for.
bool print(const EnableAnswer& answer) {
  const bool is_as_asked = is_good(answer.result);
  if (is_as_asked)
    print_success(answer, done_text(answer));
  else
    refuse(answer.task, subject_of(answer), escaped(answer.why), hint_of_answer(answer));
  if (answer.task == Task::check) print_requirements(answer);
  std::fflush(stdout);
  return is_as_asked;
}

int run(const EnableOptions& options, Task task) {
  auto enabler = Enabler::start(
      {.allowed = {.confined = options.allow_confined, .readable = options.allow_readable}, .resumes_all = true});
  if (!enabler) return report(enabler.error());
  const auto patience = options.duration.value_or(default_patience);
  const std::vector<std::int32_t> pids = selected(options);
  std::size_t waiting = 0, programs = 0;
  std::uint64_t watched_until_ns = 0;
  bool all_good = true;
  const auto take = [&](const Result<std::vector<EnableAnswer>>& answers) {
    for (const EnableAnswer& answer : *answers) {
      if (!answer.is_correction) --waiting;
      if (task == Task::enable && answer.result == EnableResult::done)
        watched_until_ns = monotonic_ns() + static_cast<std::uint64_t>(enable::watch_time.count());
      // Most processes of a host are no OCaml programs, and some end meanwhile.
      const bool is_asked_for = !options.pids.empty();
      if (!is_asked_for && (answer.result == EnableResult::not_ocaml || answer.result == EnableResult::gone)) continue;
      ++programs;
      all_good &= print(answer);
    }
  };
  const Procfs procfs;
  for (const std::int32_t pid : pids) {
    if (!options.pids.empty() && !procfs.stat(pid)) {
      ++programs;
      all_good = false;
      refuse(task, std::to_string(pid), "no such process", listed_hint);
      continue;
    }
    ++waiting;
    enabler->ask({.task = task, .pid = pid, .user = procfs.user(pid), .patience = patience}, Enabler::Wait::yes);
    auto answers = enabler->take();
    if (!answers) return report(answers.error());
    take(answers);
  }
  const std::uint64_t end_ns = monotonic_ns() + static_cast<std::uint64_t>((patience + spare_patience).count());
  // At the end whether those that were switched on come to harm.
  for (std::uint64_t now = monotonic_ns(); waiting > 0 || now < watched_until_ns; now = monotonic_ns()) {
    const std::uint64_t until_ns = waiting > 0 ? end_ns : watched_until_ns;
    pollfd answered{.fd = enabler->event_fd(), .events = POLLIN, .revents = 0};
    const bool is_late =
        now >= until_ns || ::poll(&answered, 1, static_cast<int>((until_ns - now) / 1'000'000 + 1)) == 0;
    if (is_late && waiting > 0)
      return report({.what = "no answer about " + std::to_string(waiting) + " processes",
                     .why = "the kernel did not answer in time",
                     .hint = "name single processes with -p"});
    auto answers = enabler->take();
    if (!answers) return report(answers.error());
    take(answers);
  }
  if (programs == 0) {
    const std::string meant = meant_pids(options.names);
    return report({.what = "no program found",
                   .why = "no OCaml 5 program runs that was selected",
                   .hint = meant.empty() ? "rtev-bpf ps lists OCaml processes" : meant});
  }
  return all_good ? exit_ok : exit_failure;
}

int run_checked(const EnableOptions& options, Task task) {
  if (!options.select() && !options.all) {
    say("rtev-bpf: which programs?\nhint: name them with -p PID or -n GLOB, or all of them with --all\n");
    return exit_usage;
  }
  return run(options, task);
}

CLI::App* add(CLI::App& root, const char* name, const char* description, EnableOptions& options) {
  CLI::App* const app = root.add_subcommand(name, description);
  add_process_options(*app, options);
  app->add_flag("--all", options.all, "all OCaml 5 programs of the host")
      ->excludes(app->get_option("--pid"))
      ->excludes(app->get_option("--name"));
  return app;
}

}  // namespace

int check_enabling(const std::vector<std::int32_t>& pids) {
  EnableOptions options;
  options.pids = pids;
  return run(options, Task::check);
}

Subcommand add_enable_command(CLI::App& root) {
  auto options = std::make_shared<EnableOptions>();
  CLI::App* const app = add(root, "enable", "switch events on in running programs, without a restart", *options);
  app->footer(enable_footer);
  app->get_option("--duration")->description("how long to wait for programs that sleep (default: 10s)");
  app->add_flag("--dry-run", options->dry_run, "change nothing; print what is needed, and what of that is missing");
  app->add_flag("--allow-confined", options->allow_confined,
                "also programs with a filter of system calls or a security profile: if its rules do not allow a "
                "program to make its ring, the program ends");
  app->add_flag("--allow-readable", options->allow_readable,
                "also programs whose directory for the ring may be read or searched by other users, who could keep the "
                "program from ending");
  return {.app = app, .run = [options](const Invocation&) {
            return run_checked(*options, options->dry_run ? Task::check : Task::enable);
          }};
}

Subcommand add_disable_command(CLI::App& root) {
  auto options = std::make_shared<EnableOptions>();
  CLI::App* const app = add(root, "disable", "switch the events of running programs off", *options);
  app->footer(disable_footer);
  app->remove_option(app->get_option("--duration"));
  return {.app = app, .run = [options](const Invocation&) { return run_checked(*options, Task::disable); }};
}

}  // namespace rtev::cli
