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

/// A child that waits for start() before it becomes the command, so that the tracer can follow it from its first
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
  /// Whether the command shares the terminal of the tracer. In a session of its own it cannot put input into the
  /// terminal (TIOCSTI), and gets signals of the terminal only from send_to_group().
  enum class Session : std::uint8_t { shared, own };
  /// Its own, if the command runs as another user, who could otherwise type commands into a terminal of root: before
  /// Linux 6.2, or where the kernel's `legacy_tiocsti` (the text of that setting; nothing if there is none) allows it.
  static Session session_for(bool is_other_user, bool has_terminal, const std::optional<std::string>& legacy_tiocsti);
  /// What becomes of the files of rings in the private directory when their programs end. `kept`: the caller removes
  /// them, after it has read them. `none`: the command is not traced, and is started with the caller's environment.
  enum class RingFiles : std::uint8_t { removed, kept, none };
  /// Forks. The child runs nothing of the command yet. Without `session` this host and the caller decide. `look` finds
  /// processes that use rings of the command. Its rings are larger than OCaml's own, see fitting_rings().
  static Result<Command> prepare(std::vector<std::string> arguments, Look look, Stdout out = Stdout::own,
                                 std::optional<Session> session = std::nullopt, RingFiles files = RingFiles::removed);
  Command(Command&& other) noexcept;
  Command& operator=(Command&&) = delete;
  ~Command();

  pid_t pid() const { return pid_; }
  const std::vector<std::string>& arguments() const { return arguments_; }
  /// As the kernel names a process of it: the end of its path, cut off.
  std::string program_name() const;
  /// Lets the child run the command. An error if it cannot be run; then wait() returns 126 or 127, as shells do.
  Result<void> start();
  /// Readable once the command has ended.
  int ended_fd() const { return pidfd_.get(); }
  bool has_own_session() const { return has_own_session_; }
  void send(int signal_number) const;
  /// To the command and its children in its process group, as a terminal does. Only in a session of its own.
  void send_to_group(int signal_number) const;
  /// For a tracer that ends without the destructor: removes the private directory, unless the command still runs and
  /// may need it. Async-signal-safe.
  void abandon() const noexcept;
  /// Instead of wait(): the command goes on without the tracer, and its directory stays.
  void leave();
  /// Waits for the end. Its exit status, or 128 + n if signal n killed it.
  int wait();
  /// After wait(): descendants that still run and may have rings in the private directory, which stays for them.
  const std::vector<NamedProcess>& survivors() const { return survivors_; }
  /// Where rings go, if the user chose no directory.
  std::string ring_directory() const { return directory_ ? directory_->path() : std::string{}; }
  /// Where they go, whoever chose it; empty: into its working directory, or it has none.
  std::string any_ring_directory() const;
  /// What is to be said of the size of its rings; empty: nothing.
  const std::string& ring_note() const { return ring_note_; }
  /// True if the files of rings stay until they are removed.
  bool keeps_rings() const { return keeps_rings_; }

 private:
  Command() = default;

  std::vector<std::string> arguments_;
  Look look_;
  std::optional<PrivateDir> directory_;  ///< of the rings; none if the user chose one
  std::string ring_note_;
  std::vector<NamedProcess> survivors_;
  pid_t pid_ = -1;
  int status_ = -1;
  bool has_own_session_ = false;
  bool keeps_rings_ = false;
  UniqueFd pidfd_;
  UniqueFd gate_;    ///< a byte written here lets the child go on
  UniqueFd failed_;  ///< the child writes errno here if exec fails
};

}  // namespace rtev
