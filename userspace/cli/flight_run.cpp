// SPDX-License-Identifier: MIT
#include "cli/flight_run.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/text_format.hpp"
#include "cli/messages.hpp"
#include "cli/own_directory.hpp"

namespace rtev::cli {
namespace {

/// For the signal handler.
std::atomic<flight::FlightRecorder*> signalled = nullptr;
struct sigaction previous_action;

void on_signal(int /*number*/) {
  if (flight::FlightRecorder* const recorder = signalled) recorder->request_dump_by_signal();
}

/// "pause>50ms of server/4242: 51.2ms", "snap".
std::string cause_text(const flight::DumpCause& cause) {
  if (cause.what == "lost" && cause.pid != 0) {
    return fmt::format("words of the ring of {}/{} were lost: {}", Escaped{cause.program}, cause.pid, cause.value);
  }
  std::string text = escaped(cause.what);
  if (!cause.program.empty()) text += fmt::format(" of {}", Escaped{cause.program});
  if (cause.pid != 0) text += fmt::format("/{}", cause.pid);
  if (!cause.value.empty()) text += ": " + cause.value;
  return text;
}

/// Programs choose their names: environments of scripts get them escaped.
std::vector<std::string> variables_of(const flight::DumpResult& result) {
  return {"RTEV_DUMP_FILE=" + result.path,
          "RTEV_TRIGGER=" + escaped(result.cause.what),
          "RTEV_VALUE=" + result.cause.value,
          fmt::format("RTEV_PID={}", result.cause.pid),
          "RTEV_PROGRAM=" + escaped(result.cause.program),
          "RTEV_VERDICT=" + result.verdict};
}

void report_dump(const flight::DumpResult& result, const ProgramRunner* runner) {
  if (result.error) {
    report(*result.error);
    return;
  }
  std::string line = fmt::format("rtev-bpf: dump {}: {}", escaped(result.path), cause_text(result.cause));
  if (!result.verdict.empty()) line += "; " + result.verdict;
  say(line + "\n");
  if (runner != nullptr && !runner->run(result.path, variables_of(result)))
    say("rtev-bpf: too many runs of the program of --exec wait: it is not run for this dump\n");
}

}  // namespace

Result<std::unique_ptr<FlightRun>> FlightRun::start(const FlightOptions& options) {
  // Whoever gets the name of a dump may be elsewhere.
  const std::string path =
      std::filesystem::absolute(options.directory.empty() ? default_dump_directory() : options.directory)
          .lexically_normal()
          .string();
  auto directory = open_own_directory(path);
  if (!directory) return std::unexpected(std::move(directory.error()));
  std::unique_ptr<ProgramRunner> runner;
  if (!options.program.empty()) {
    auto started = ProgramRunner::start(options.program);
    if (!started) return std::unexpected(std::move(started.error()));
    runner = std::make_unique<ProgramRunner>(std::move(*started));
  }
  std::optional<ControlServer> server;
  if (auto opened = ControlServer::open(ControlKind::recorder)) {
    server.emplace(std::move(*opened));
  } else {
    report(opened.error());
    say("rtev-bpf: rtev-bpf snap will not find this recorder; SIGUSR2 asks it for a dump\n");
  }
  auto recorder = std::make_unique<flight::FlightRecorder>(
      options.recorder(),
      flight::DumpDirectory(std::move(*directory), path,
                            {.max_bytes = options.max_disk_bytes, .min_free = options.min_free}),
      [runner = runner.get()](const flight::DumpResult& result) { report_dump(result, runner); });
  return std::unique_ptr<FlightRun>(new FlightRun(std::move(recorder), std::move(runner), std::move(server)));
}

FlightRun::FlightRun(std::unique_ptr<flight::FlightRecorder> recorder, std::unique_ptr<ProgramRunner> runner,
                     std::optional<ControlServer> server)
    : ForwardingSink(*recorder),
      runner_(std::move(runner)),
      recorder_(std::move(recorder)),
      server_(std::move(server)) {
  signalled = recorder_.get();
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR2, &action, &previous_action);
}

FlightRun::~FlightRun() {
  ::sigaction(SIGUSR2, &previous_action, nullptr);
  signalled = nullptr;
  server_.reset();  // it waits for results of the recorder, which are there at the end of the run
}

void FlightRun::summary(const RunSummary& summary, const Registry& registry) {
  ForwardingSink::summary(summary, registry);
  // From here on another recorder may be the one to ask.
  server_.reset();
}

void FlightRun::serve(ControlServer::Handler other) {
  if (!server_) return;
  const auto started = server_->start([this, other = std::move(other)](std::string_view request, UniqueFd& connection) {
    if (request != "dump") return other ? other(request, connection) : std::string();
    const flight::DumpResult made = recorder_->request_dump("snap").get();
    return dump_answer(made.error ? Result<std::string>(std::unexpected(*made.error)) : made.path);
  });
  if (!started) report(started.error());
}

std::string FlightRun::figures_text() const {
  const flight::RecorderFigures figures = recorder_->figures();
  std::string text =
      fmt::format("wrote {} to {}", Counted{figures.written, "dump", "dumps"}, Escaped{recorder_->directory()});
  if (figures.removed > 0)
    text += fmt::format("; removed {} (--max-disk)", Counted{figures.removed, "older dump", "older dumps"});
  if (figures.failed > 0) text += fmt::format("; {} could not be written", Grouped{figures.failed});
  if (figures.cut_short > 0)
    text += fmt::format("; {} ended early, as the disk is too slow", Grouped{figures.cut_short});
  text += '\n';
  std::uint64_t suppressed = 0;
  std::string reasons;
  for (std::size_t i = 0; i < figures.suppressed.size(); ++i) {
    if (figures.suppressed[i] == 0) continue;
    suppressed += figures.suppressed[i];
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", Grouped{figures.suppressed[i]},
                           to_string(static_cast<flight::Suppressed>(i)));
  }
  if (suppressed > 0)
    text += fmt::format("conditions were met {} without a dump: {}\n", Counted{suppressed, "time", "times"}, reasons);
  return text;
}

}  // namespace rtev::cli
