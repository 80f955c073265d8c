// SPDX-License-Identifier: MIT
// The socket through which `rtev-bpf snap` asks a running recorder for a dump.
#pragma once

#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "flight/dump_writer.hpp"
#include "rtev/error.hpp"

namespace rtev::cli {

/// Answers root and the user it runs for, one after the other, in a thread of its own.
class SnapServer {
 public:
  using Request = std::function<std::future<flight::DumpResult>()>;
  /// Makes the socket "recorder-PID.sock" in runtime_directory(), which is open only to its user: sockets of recorders
  /// that are gone are removed. Call it before the tracer is confined.
  static Result<SnapServer> open();
  SnapServer(SnapServer&&) = default;
  SnapServer& operator=(SnapServer&&) = delete;
  ~SnapServer();

  /// From now on requests are answered. A result must be there when the server is destroyed.
  void start(Request request);
  const std::string& path() const { return path_; }

 private:
  SnapServer(UniqueFd directory, UniqueFd socket, std::string name, std::string path)
      : directory_(std::move(directory)), socket_(std::move(socket)), name_(std::move(name)), path_(std::move(path)) {}
  static void run(int socket, int ends, uid_t user, const Request& request);

  UniqueFd directory_, socket_;
  std::string name_, path_;
  EventFd ends_;
  std::thread thread_;
};

/// The sockets of recorders in runtime_directory() that answer.
std::vector<std::string> running_recorders();

/// Asks for a dump, and waits until it is complete. The name of its file.
Result<std::string> ask_for_dump(const std::string& socket_path);

}  // namespace rtev::cli
