// SPDX-License-Identifier: MIT
// What rtev-bpf says on stderr besides the summary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/process_view.hpp"
#include "rtev/error.hpp"
#include "stream/registry.hpp"

namespace rtev::cli {

/// Prints a message, whole lines, to stderr. Escapes what controls a terminal: also the caller's own file names can
/// come from strangers.
void say(std::string_view message);

/// Prints "rtev-bpf: what subject: why" and, if there is one, "hint: ..." to stderr. Returns exit_failure.
int report(const Error& error);

/// Flushes stdout. Returns exit_failure, and says why, if what was printed there did not get through; else `status`.
int finish_stdout(int status);

// The messages of a trace. Each is some whole lines, or empty if there is nothing to say.

struct StartFacts {
  bool has_end = false;          ///< a duration is set, or a service manager ends it
  bool probes_all = false;       ///< programs with events off are traced, too
  bool enables = false;          ///< their events are switched on
  bool selects = false;          ///< -p or -n is given
  bool found_everything = true;  ///< false: some processes that ran before are still being inspected
};
/// When tracing begins.
std::string start_message(const Registry& registry, const StartFacts& facts);

/// Functions of the runtime that could not be probed.
struct MissingProbes {
  std::size_t binaries = 0;   ///< of which none could be
  std::size_t functions = 0;  ///< of the other binaries
  std::optional<Error> last_error{};
};
std::string missing_probes_message(const MissingProbes& missing);

/// Another process is still at work after the end: the kernel detaches the probes of so many binaries one by one.
std::string slow_detach_message(std::size_t binaries);

/// A signal came before the command was started, or, without one, before tracing began: nothing is written.
std::string interrupted_message(std::string_view command);

/// The command has ended and had no events. The reason, if it is certain.
std::string no_events_message(std::string_view command, const Registry& registry);

/// That many programs aborted as OCaml does where it cannot create a ring in the directory. `ring_directory`: empty if
/// the user chose it.
std::string aborted_message(std::uint64_t programs, std::string_view command, std::string_view ring_directory);

/// The command died of SIGBUS while the file system of this directory, where its ring is, was full.
std::string full_rings_message(std::string_view command, std::string_view directory);

/// The command goes on after the tracer was asked to end three times.
std::string left_message(std::int32_t pid, std::string_view command);

/// Processes that still run after the command has ended.
std::string survivors_message(const std::vector<NamedProcess>& survivors, std::string_view command,
                              std::string_view ring_directory);

}  // namespace rtev::cli
