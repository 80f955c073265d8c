// SPDX-License-Identifier: MIT
// Which processes there are, and which program image each of them runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/program_names.hpp"
#include "helper/process_queries.hpp"
#include "processes/traced_process.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// Which processes to trace.
struct ProcessFilter {
  std::vector<std::int32_t> pids{};       ///< only these, if any
  std::vector<std::string> name_globs{};  ///< of -n: see base/name_globs.hpp
  bool only_followed = false;             ///< only processes that BPF follows: a command and its descendants

  /// False for the tracer itself, and for processes of which nothing else needs to be known.
  bool wants_pid(std::int32_t pid) const;
  bool wants(std::int32_t pid, const ProgramNames& names, bool followed) const;
};

/// ProcessTable::IsRunning of the host. Never waits.
bool is_running(std::int32_t pid);

/// Processes by pid, one image each: candidates whose program is still being identified, and those that are part of the
/// stream. One thread.
class ProcessTable {
 public:
  /// True while a process with this pid runs: it exists, and is not a zombie.
  using IsRunning = std::function<bool(std::int32_t pid)>;
  ProcessTable(IsRunning is_running, Registry& registry) : is_running_(std::move(is_running)), registry_(registry) {}

  TracedProcess* find(std::int32_t pid);
  const TracedProcess* find(std::int32_t pid) const;
  /// The process, if it runs under its pid still, as far as is known.
  TracedProcess* find(std::int32_t pid, std::uint64_t start_ticks);
  /// Replaces what the table has under this pid. References stay valid until erase().
  TracedProcess& insert(TracedProcess process);
  void erase(std::int32_t pid) {
    inspecting_.erase(pid);
    asks_service_.erase(pid);
    processes_.erase(pid);
  }
  /// Sets ProgramState::inspecting.
  void set_inspecting(TracedProcess& process, std::optional<FileIdentity> file);
  auto processes() const { return processes_ | std::views::values; }

  /// What is known of an image: in the registry once it is part of the stream.
  ProcessInfo& info(TracedProcess& process);
  const ProcessInfo& info(const TracedProcess& process) const;
  /// False once the process is a zombie or gone. If its pid has a new owner already, its end has been reported, or
  /// the next scan finds out.
  bool is_alive(const TracedProcess& process) const { return is_running_(process.pid); }

  /// True for a process that is part of the stream.
  bool traces(std::int32_t pid) const;

  /// The image that runs under a pid, as far as is known: to attribute what was done under that pid.
  struct CurrentImage {
    ProcessIndex index;
    std::uint32_t user;
    std::uint64_t began_ns;  ///< earlier events belong to another image; 0: unknown, since it was found running
  };
  /// Empty if it is not part of the stream.
  std::optional<CurrentImage> current_image(std::int32_t pid) const;

  /// A process of the stream that has no ring, as far as is known.
  struct Ringless {
    ProcessIndex index;
    std::uint32_t binary;
    std::uint32_t user;
    std::uint64_t since_ns;  ///< when it came into view
    bool began_then;         ///< it began at that time; false if it was found running
    bool forked;             ///< by another process of its program
  };
  std::vector<Ringless> ringless(std::uint32_t binary_id) const;
  std::optional<Ringless> ringless_process(std::int32_t pid) const;
  /// Binaries that have such processes.
  std::set<std::uint32_t> ringless_binaries() const;
  /// Binaries with living processes.
  std::set<std::uint32_t> binaries_in_use() const;

  bool is_inspecting() const { return !inspecting_.empty(); }
  /// Processes that wait for the inspection of a file.
  std::vector<std::int32_t> waiting_for(const FileIdentity& file) const;
  /// Since when images of the stream have their programs inspected, or are asked for their service: see
  /// naming_timeout_ns.
  std::optional<std::uint64_t> unnamed_since(std::uint64_t now_ns) const;
  /// Adds the service of an image of the stream to its info, when the query is answered.
  void ask_service(ProcessQueries& queries, TracedProcess& process);
  /// At the end of a run: adds the peak memory of running images to their info, for as many as are ever listed, when
  /// the queries are answered.
  void ask_peak_memory(ProcessQueries& queries);

 private:
  static std::optional<Ringless> as_ringless(const TracedProcess& process);

  IsRunning is_running_;
  Registry& registry_;
  std::unordered_map<std::int32_t, TracedProcess> processes_;
  // Pids: few, while there may be very many processes.
  std::set<std::int32_t> inspecting_, asks_service_;
};

}  // namespace rtev
