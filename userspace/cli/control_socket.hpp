// SPDX-License-Identifier: MIT
// The socket through which other processes of the same user ask a running recorder or agent for something.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

namespace rtev::cli {

/// A flight recorder makes dumps (rtev-bpf snap). Agents without one can only be replaced.
enum class ControlKind : std::uint8_t { recorder, agent };

/// Takes requests of root and of the user it runs for, one after the other, in a thread of its own. A request is one
/// message: what is asked for.
class ControlServer {
 public:
  /// Called by the thread; what it returns is sent as the answer, unless it has taken the connection.
  using Handler = std::function<std::string(std::string_view request, UniqueFd& connection)>;

  /// Sockets of processes that are gone are removed. Call it before the tracer is confined.
  static Result<ControlServer> open(ControlKind kind);
  ControlServer(ControlServer&&) = default;
  ControlServer& operator=(ControlServer&&) = delete;
  ~ControlServer();

  /// Makes the socket "recorder-PID.sock" or "agent-PID.sock" in runtime_directory(), which is open only to its user,
  /// and takes requests from now on. A handler must return when the server is destroyed.
  Result<void> start(Handler handler);

 private:
  ControlServer(UniqueFd directory, UniqueFd socket, std::string name, std::string path)
      : directory_(std::move(directory)), socket_(std::move(socket)), name_(std::move(name)), path_(std::move(path)) {}
  static void run(int socket, int ends, uid_t user, const Handler& handler);

  UniqueFd directory_, socket_;
  std::string name_, path_;
  EventFd ends_;
  std::thread thread_;
};

/// The sockets of recorders in runtime_directory() that answer.
std::vector<std::string> running_recorders();
/// The user's recorder or agent with this pid, connected.
Result<UniqueFd> connect_to_agent(pid_t pid);

/// Has handlers for requests "dump": an answer says what became of one.
std::string dump_answer(const Result<std::string>& file);
/// Asks for a dump, and waits until it is complete. The name of its file.
Result<std::string> ask_for_dump(const std::string& socket_path);

}  // namespace rtev::cli
