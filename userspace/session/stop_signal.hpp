// SPDX-License-Identifier: MIT
// Ctrl-C: the first one requests an orderly end, the second one ends at once.
#pragma once

#include "base/unique_fd.hpp"

namespace rtev {

class Command;

/// Catches SIGINT, SIGTERM and SIGHUP for its lifetime, and ignores SIGPIPE and SIGXFSZ: writers see the error. SIGHUP
/// stays ignored if it was at the start (nohup). The second signal ends the process at once. So does the
/// first one if the reader of our output (ReaderWait) then takes nothing for 0.8 s. timeout(1) sends each signal to us
/// and to our process group: the same signal within 0.2 s counts once unless both came from the terminal.
///
/// With a command (accompany()), signals are the command's. SIGQUIT, SIGUSR1 and SIGUSR2 are caught, too, unless they
/// were ignored at the start. If it has a session of its own, SIGTSTP, SIGCONT and SIGWINCH are caught as well. take()
/// returns each signal that other processes send, as often as they send it. A second signal from the terminal ends the
/// process at once. The third SIGINT or SIGTERM of processes is the tracer's: see leaves_command(). The fourth ends the
/// process at once.
///
/// One object at a time, destroyed when no other threads are left to run its handlers.
class StopSignal {
 public:
  /// Before anything exists that an end at once would leave behind.
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();

  /// From now on signals are the command's, which must outlive the object.
  void accompany(const Command& command);
  /// In a child of this process that becomes another program: signals do what they did before there was an object.
  static void restore_actions();

  /// Readable (epoll) while signals wait to be taken.
  int event_fd() const { return read_end_.get(); }
  /// The next signal, in the order they came; 0 if none waits.
  int take();
  /// True if the signal taken last came from the terminal, which sends it to the whole foreground process group: the
  /// command has it already.
  bool from_terminal() const { return from_terminal_; }
  /// True if the trace is to end although the command does not: it got two SIGINT or SIGTERM of processes.
  bool leaves_command() const;
  /// The first of SIGINT, SIGTERM and SIGHUP that came, taken or not; 0 if none did.
  int received() const;

 private:
  UniqueFd read_end_;
  UniqueFd write_end_;
  bool from_terminal_ = false;
};

}  // namespace rtev
