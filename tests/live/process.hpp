// SPDX-License-Identifier: MIT
// Programs run by tests: started with pipes, talked to line by line, and never left behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"

namespace rtev::test {

/// The longest a test waits for anything. Generous: sanitizers and a loaded machine are slow.
inline constexpr std::chrono::seconds patience{30};

/// The user without rights, and the group of the same number.
inline constexpr uid_t nobody = 65534;

/// What to run and how.
struct Command {
  std::vector<std::string> argv;  ///< argv[0] is looked up in PATH
  /// Added to the test's own environment, from which everything about OCaml, the tracer, sudo and colours was removed.
  std::map<std::string, std::string> env{};
  std::filesystem::path directory{};
  std::optional<uid_t> user{};  ///< runs as this user and as the group of the same number
  std::optional<int> cpu{};     ///< runs on this cpu only
  bool terminal = false;        ///< stdout is a terminal
  bool error_terminal = false;  ///< stderr is one
  int keep_fd = -1;             ///< stays open in the program, under the same number
};

struct ExitStatus {
  int raw = 0;  ///< as wait(2) gives it

  std::optional<int> code() const;
  std::optional<int> signal() const;
};

struct Outcome {
  ExitStatus status;
  std::string out;
  std::string err;
};

/// A running program, leader of its own process group. What fails throws std::runtime_error with what the program said,
/// so that a test reads straight down. The end of the object is the end of the group.
class Process {
 public:
  explicit Process(const Command& command);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  pid_t pid() const { return pid_; }

  /// Lines of stdout up to the line `last`, without it.
  std::vector<std::string> lines_until(std::string_view last);
  /// The next line of stdout that holds a text.
  std::string line_with(std::string_view text);
  /// Lets a program that waits at a gate go on.
  void go() { write("\n"); }
  void write(std::string_view text);
  void close_stdin() { stdin_.reset(); }
  void signal(int number);

  /// Waits for the end; the outcome holds all the program wrote.
  Outcome wait(std::chrono::milliseconds limit = patience);
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
  std::size_t read_ = 0;                    // of out_, by next_line()
  std::jthread collector_;
};

/// Runs a program to its end, with stdin closed from the start.
Outcome run(const Command& command);

}  // namespace rtev::test
