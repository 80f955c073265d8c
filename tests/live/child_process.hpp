// SPDX-License-Identifier: MIT
// Runs programs for tests: connected by pipes, driven line by line, always cleaned up.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {

/// The unprivileged user, and the group of the same number.
inline constexpr uid_t nobody = 65534;

/// What to run, and how.
struct Command {
  std::vector<std::string> argv;  ///< argv[0] is looked up in PATH
  /// Added to the test's own environment, without the variables of OCaml, the tracer, sudo and colours.
  std::map<std::string, std::string> env{};
  std::filesystem::path directory{};
  std::optional<uid_t> user{};                  ///< run as this user and the group of the same number
  std::optional<int> cpu{};                     ///< run on this cpu only
  bool terminal = false;                        ///< stdout is a terminal
  bool error_terminal = false;                  ///< stderr is a terminal
  std::optional<std::uint32_t> refused_call{};  ///< has a filter of system calls (seccomp), which refuses this one
  int keep_fd = -1;                             ///< kept open in the program, under the same number
};

struct ExitStatus {
  int raw = 0;  ///< status of wait(2)

  std::optional<int> code() const;
  std::optional<int> signal() const;
};

struct Outcome {
  ExitStatus status;
  std::string out;
  std::string err;
};

/// A running program, leader of its own process group. Failures throw std::runtime_error with the program's output. The
/// destructor kills the process group.
class Process {
 public:
  explicit Process(const Command& command);
  /// Also waits until the program has printed this line.
  Process(const Command& command, std::string_view line) : Process(command) { lines_until(line); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  pid_t pid() const { return pid_; }

  /// Lines of stdout up to the line `last`, without it.
  std::vector<std::string> lines_until(std::string_view last);
  /// The next line of stdout that contains this text.
  std::string line_with(std::string_view text);
  /// The first line of stderr that contains this text.
  std::string error_with(std::string_view text);
  /// Lets a program that waits at a gate continue.
  void go() { write("\n"); }
  std::vector<std::string> go_until(std::string_view last) {
    go();
    return lines_until(last);
  }
  void write(std::string_view text);
  void close_stdin() { stdin_.reset(); }
  void signal(int number);
  /// Stops the program with SIGSTOP; returns when it has stopped.
  void stop();
  /// Lets a stopped program continue.
  void resume() { signal(SIGCONT); }

  /// Waits for the end. The outcome holds everything the program wrote.
  Outcome wait(std::chrono::milliseconds limit = wait_timeout);
  bool running();

 private:
  void collect();
  std::optional<std::string> next_line(std::chrono::steady_clock::time_point deadline);
  [[noreturn]] void fail(const std::string& what);

  std::string name_;
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_;
  UniqueFd pidfd_, stdin_, stdout_, stderr_, stop_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string out_, err_;                   // guarded by mutex_
  bool out_open_ = true, err_open_ = true;  // likewise
  std::size_t read_ = 0;                    // bytes of out_ consumed by next_line()
  std::jthread collector_;
};

/// Runs a program to its end, with stdin closed.
Outcome run(const Command& command);
/// Lets a program pass all its gates and run to its end.
Outcome run_through(Process& process);

/// Child processes of all threads of a process.
std::vector<pid_t> children_of(pid_t pid);
/// Those that have this name.
std::vector<pid_t> children_named(pid_t pid, const std::string& name);
/// A process and all that descend from it.
std::vector<pid_t> family_of(pid_t pid);

/// Starts rtev-bpf; returns when all probes are attached and the first scan is done.
void start_ready(std::optional<Process>& process, Command command);

}  // namespace rtev::test
