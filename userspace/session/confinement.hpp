// SPDX-License-Identifier: MIT
// What a process gives up before it decodes what anyone may write: a tracer once its BPF programs are loaded, and dump,
// convert and -i once their input is open.
#pragma once

#include <cstdint>
#include <string>

#include "rtev/error.hpp"

namespace rtev {

/// Gives up, for good, all rights that a run does not need after its start:
/// - under sudo the process becomes the user who called sudo, and writes new files with the rights of that user;
/// - of the capabilities the one stays that schedules threads, and without sudo the one that writes files;
/// - it gains no rights by exec, and other processes of its user may not look into it;
/// - a seccomp filter refuses to run programs, to look into other processes, to open sockets, to enter or make
///   namespaces, and to load or attach BPF programs.
/// Holds for the calling thread and those that it starts afterwards: call it before there are others.
Result<void> confine_tracer();

/// The same for the process that attaches uprobes: it may do only that, and keeps the capabilities for it.
/// `uprobe_multi`: whether probes are attached by that, or by perf_event, which takes another capability.
Result<void> confine_attacher(bool uprobe_multi);

/// The same for a process that only reads files which are open already: of the capabilities only the one that writes
/// files stays, and without sudo only. `samples`: it may also open events that sample threads.
enum class ReaderMay : std::uint8_t { read, sample };
Result<void> confine_reader(ReaderMay may = ReaderMay::read);

/// The same for a process that talks to the network: it may open sockets and nothing else, and as root becomes a user
/// without files and processes.
Result<void> confine_network_process();

/// The rights that the processes of a run hold when they are confined, in several lines.
std::string describe_confinement(bool uprobe_multi);

}  // namespace rtev
