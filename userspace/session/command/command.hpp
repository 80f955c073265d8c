// SPDX-License-Identifier: MIT
// CMD of "-- CMD ARG...": started with runtime events on, as the user who called sudo, its exit status passed on.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"
#include "session/command/private_dir.hpp"

namespace rtev {

/// A child that waits to be released before it becomes the command, so that the tracer can follow it from its first
/// instruction. The rings of the command and its descendants go to a private directory. The destructor removes it
/// unless some of these processes still run.
class Command {
 public:
  /// The exit status of a command that does not exist, as shells give it.
  static constexpr int not_found = 127;
  /// An error if there is no such command: a mistyped name must not overwrite an output file, which begins before the
  /// command does.
  static Result<void> check(const std::string& name);

  /// Where the command's stdout goes.
  enum class Stdout : std::uint8_t { own, to_stderr };
  /// Forks. The child runs nothing of the command yet.
  static Result<Command> prepare(std::vector<std::string> arguments, Stdout out = Stdout::own);
  Command(Command&& other) noexcept;
  Command& operator=(Command&&) = delete;
  ~Command();

  pid_t pid() const { return pid_; }
  const std::vector<std::string>& arguments() const { return arguments_; }
  /// Lets the child run the command. An error if it cannot be run; then wait() returns 126 or 127, as shells do.
  Result<void> release();
  /// Readable once the command has ended.
  int ended_fd() const { return pidfd_.get(); }
  void send(int signal_number) const;
  /// For a tracer that ends without the destructor: removes the private directory, unless the command still runs and
  /// may need it. Async-signal-safe.
  void abandon() const noexcept;
  /// Waits for the end. Its exit status, or 128 + n if signal n killed it.
  int wait();
  /// After wait(): descendants that still run and may have rings in the private directory, which stays for them.
  const std::vector<std::int32_t>& survivors() const { return survivors_; }
  /// Where rings go, if the user chose no directory.
  std::string ring_directory() const { return directory_ ? directory_->path() : std::string{}; }

 private:
  Command() = default;

  std::vector<std::string> arguments_;
  std::optional<PrivateDir> directory_;  ///< of the rings; none if the user chose one
  std::vector<std::int32_t> survivors_;
  pid_t pid_ = -1;
  int status_ = -1;
  UniqueFd pidfd_;
  UniqueFd gate_;    ///< a byte written here releases the child
  UniqueFd failed_;  ///< the child writes errno here if exec fails
};

}  // namespace rtev
