// SPDX-License-Identifier: MIT
// Asks the tracer from the process that talks to the network.
#pragma once

#include <event2/event.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent_request.hpp"
#include "base/unique_fd.hpp"

namespace rtev::agent {

struct FreeEvent {
  void operator()(event* freed) const { ::event_free(freed); }
};
using EventPtr = std::unique_ptr<event, FreeEvent>;

/// Questions of the same kind that wait at the same time are asked once. One thread.
class TracerClient {
 public:
  /// Nothing if the tracer does not answer in time.
  using Answer = std::function<void(const std::optional<std::string>& content)>;

  /// Ends the loop of `base` when the tracer closes the channel. The tracer answers within milliseconds, unless the
  /// host is overloaded.
  TracerClient(event_base* base, int channel, std::chrono::seconds timeout = std::chrono::seconds(5));
  TracerClient(const TracerClient&) = delete;
  TracerClient& operator=(const TracerClient&) = delete;

  void ask(Request request, Answer answer);
  /// Called when the tracer says that it is to finish.
  void on_finish(std::function<void()> finish) { finish_ = std::move(finish); }

 private:
  struct Pending {
    std::vector<Answer> answers{};  ///< none: it was not asked
    EventPtr timeout{};

    void settle(const std::optional<std::string>& content);
  };

  void on_readable();
  void reserve();

  event_base* base_;
  int channel_;
  timeval timeout_;
  EventPtr readable_;
  UniqueFd spare_;
  std::function<void()> finish_;
  std::array<Pending, static_cast<std::size_t>(last_request) + 1> pending_{};
};

}  // namespace rtev::agent
