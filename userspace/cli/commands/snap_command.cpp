// SPDX-License-Identifier: MIT
// rtev-bpf snap: asks a running recorder for a dump.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/control_socket.hpp"
#include "cli/messages.hpp"
#include "cli/own_directory.hpp"

namespace rtev::cli {
namespace {

constexpr const char* snap_footer =
    "It asks the recorder of this user, as started by record --keep, and prints the name of the file when that is "
    "complete. SIGUSR2 to the recorder asks for a dump, too, without an answer.";

Result<std::string> find_recorder(const std::string& given) {
  if (!given.empty()) return given;
  const std::vector<std::string> running = running_recorders();
  if (running.size() == 1) return running.front();
  if (running.empty()) {
    return std::unexpected(Error{.what = "no recorder of this user is running",
                                 .why = "there is no socket in " + runtime_directory(),
                                 .hint = "rtev-bpf record --keep 30s starts one"});
  }
  return std::unexpected(
      Error{.what = "several recorders are running",
            .hint = fmt::format("say which one: --socket {}", fmt::join(running, ", or --socket "))});
}

int run_snap(const std::string& given) {
  const auto socket = find_recorder(given);
  if (!socket) return report(socket.error());
  const auto file = ask_for_dump(*socket);
  if (!file) return report(file.error());
  fmt::print("{}\n", printable_message(*file));
  return finish_stdout(exit_ok);
}

}  // namespace

Subcommand add_snap_command(CLI::App& root) {
  auto socket = std::make_shared<std::string>();
  CLI::App* const app = root.add_subcommand("snap", "have a running recorder write what it keeps");
  app->footer(snap_footer);
  app->add_option("--socket", *socket, "the socket of the recorder to ask, if several are running")->type_name("PATH");
  return {.app = app, .run = [socket](const Invocation&) { return run_snap(*socket); }};
}

}  // namespace rtev::cli
