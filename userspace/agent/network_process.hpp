// SPDX-License-Identifier: MIT
// The process that talks to the network for the tracer: it has no rights, and sees nothing but finished metrics.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent_request.hpp"
#include "agent/otlp_exporter.hpp"
#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

namespace rtev::agent {

struct NetworkOptions {
  UniqueFd listener{};                       ///< none: no HTTP
  std::vector<std::string> allowed_hosts{};  ///< see is_known_host()
  std::optional<OtlpOptions> otlp{};
  bool waits = false;  ///< does nothing before NetworkProcess::begin()
};

/// If it crashes it is started again, after a second. It ends with the tracer. One thread.
class NetworkProcess {
 public:
  /// Call it before there are BPF programs and threads.
  static Result<NetworkProcess> start(NetworkOptions options);
  NetworkProcess(NetworkProcess&& other) noexcept
      : channel_(std::move(other.channel_)), pid_(std::exchange(other.pid_, -1)) {}
  NetworkProcess& operator=(NetworkProcess&&) = delete;
  ~NetworkProcess();

  /// Readable when answer() has something to do.
  int event_fd() const { return channel_.get(); }
  /// Answers what it has asked for. `make` must be quick: events wait for it.
  void answer(const std::function<std::string(Request request)>& make);
  void begin() const { order(Order::begin); }
  /// It takes no new connections, and ends when it has answered those that there are.
  void finish() const { order(Order::finish); }
  /// Both the process and the one that starts it again are gone.
  bool has_ended() const { return has_ended_; }

 private:
  void order(Order order) const;
  NetworkProcess(UniqueFd channel, pid_t pid) : channel_(std::move(channel)), pid_(pid) {}

  UniqueFd channel_;
  pid_t pid_;
  bool has_ended_ = false;
};

}  // namespace rtev::agent
