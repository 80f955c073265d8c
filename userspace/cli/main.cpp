// SPDX-License-Identifier: MIT
// rtev-bpf: traces every OCaml 5 process of this host, together with what the kernel does to its threads.
#include <fmt/core.h>
#include <unistd.h>

#include <ctime>
#include <exception>

#include "base/exit_status.hpp"
#include "base/folding.hpp"
#include "base/standard_streams.hpp"
#include "base/terminal.hpp"
#include "cli/command_line.hpp"
#include "cli/messages.hpp"

int main(int argc, char** argv) {
  rtev::reserve_standard_streams();
  // Of help; of a report where it goes to.
  if (const std::size_t columns = rtev::terminal_columns(STDOUT_FILENO)) rtev::fit_terminal(columns);
  ::tzset();  // the file of the time zone cannot be read any more when this process is confined
  try {
    const auto run = rtev::cli::CommandLine().parse({argv, argv + argc});
    return run ? (*run)() : run.error();
  } catch (const std::exception& error) {
    // Only the standard library throws, e.g. when memory runs out.
    rtev::cli::say(fmt::format("rtev-bpf: fatal error: {}\n", error.what()));
    return rtev::exit_failure;
  }
}
