// SPDX-License-Identifier: MIT
// A loop of events with a tracer that answers, and a server of HTTP, in one thread.
#pragma once

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/tracer_client.hpp"
#include "helper/channel.hpp"

namespace rtev::agent {

struct FreeBase {
  void operator()(event_base* freed) const { ::event_base_free(freed); }
};
struct FreeServer {
  void operator()(evhttp* freed) const { ::evhttp_free(freed); }
};

class NetworkTest : public testing::Test {
 protected:
  using Clock = std::chrono::steady_clock;

  NetworkTest() : base(::event_base_new()), channel_(helper::make_channel().value()) {
    tracer_.reset(::event_new(
        base.get(), channel_.first.get(), EV_READ | EV_PERSIST,
        [](evutil_socket_t, short, void* self) { static_cast<NetworkTest*>(self)->answer(); }, this));
    ::event_add(tracer_.get(), nullptr);
    client.emplace(base.get(), channel_.second.get(), std::chrono::seconds(1));
  }

  /// Runs the loop until this is true, or for too long.
  void run_until(const std::function<bool()>& done) {
    constexpr std::chrono::seconds limit{20};
    const auto deadline = Clock::now() + limit;
    while (!done()) {
      ASSERT_LT(Clock::now(), deadline);
      const timeval wait{.tv_sec = 0, .tv_usec = 100'000};
      ::event_base_loopexit(base.get(), &wait);
      ::event_base_loop(base.get(), EVLOOP_ONCE);
    }
  }

  std::unique_ptr<event_base, FreeBase> base;
  std::map<Request, std::string> contents{};  ///< what the tracer answers
  std::map<Request, int> asked{};
  bool answers = true;
  std::optional<TracerClient> client;

 private:
  void answer() {
    const auto message = helper::receive(channel_.first.get(), true);
    ASSERT_TRUE(message && message->bytes.size() == 1);
    const auto request = static_cast<Request>(message->bytes[0]);
    ++asked[request];
    if (!answers) return;
    helper::Message reply{.bytes = {static_cast<std::byte>(request)}, .fds = {}};
    UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
    const std::string& content = contents[request];
    ASSERT_EQ(::write(file.get(), content.data(), content.size()), static_cast<ssize_t>(content.size()));
    reply.fds.push_back(std::move(file));
    helper::send(channel_.first.get(), reply, true);
  }

  std::pair<UniqueFd, UniqueFd> channel_;
  EventPtr tracer_;
};

}  // namespace rtev::agent
