// SPDX-License-Identifier: MIT
// Serves metrics over HTTP, to few clients that are not trusted.
#pragma once

#include <event2/http.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/tracer_client.hpp"
#include "base/unique_fd.hpp"

namespace rtev::agent {

struct MetricsHttpOptions {
  std::chrono::milliseconds max_age = std::chrono::minutes(1);  ///< of a connection
  std::vector<std::string> allowed_hosts{};                     ///< see is_known_host()
};

/// GET /metrics, /healthz and /. Requests have 8 KiB, and idle connections 5 s. Beyond 48 connections the oldest ones
/// end, those that are idle first. One thread, one such object.
class MetricsHttp {
 public:
  using Options = MetricsHttpOptions;
  /// `listener`: a listening socket, not blocking. `more`: called for each scrape, adds metrics of this process.
  MetricsHttp(event_base* base, UniqueFd listener, TracerClient& tracer, std::function<std::string()> more,
              Options options = {});
  MetricsHttp(const MetricsHttp&) = delete;
  /// Takes no new connections: they wait for whoever else listens on the socket. Calls `done` when those that there are
  /// have ended, or are idle.
  void finish(std::function<void()> done);
  MetricsHttp& operator=(const MetricsHttp&) = delete;

 private:
  struct FreeHttp {
    void operator()(evhttp* freed) const { ::evhttp_free(freed); }
  };
  /// A request that waits for the tracer; null once its client is gone.
  struct Waiting {
    evhttp_request* request;
    MetricsHttp* server;
  };
  struct Connection {
    std::uint64_t number = 0;  ///< in the order in which they were seen
    int looks = 0;             ///< of end_old_connections()
    bool is_answered = false;  ///< it has a request
  };

  void serve(evhttp_request* request);
  void ask(evhttp_request* request, Request what);
  void answer(const std::shared_ptr<Waiting>& waiting, Request what, const std::optional<std::string>& content);
  void pause_accepting();
  void on_accepted();
  void look_at_connections();
  void end_oldest(std::size_t count);
  void note_answered(evhttp_connection* connection, bool is_answered);
  void look_whether_done();
  void end_old_connections();

  TracerClient& tracer_;
  std::function<std::string()> more_;
  std::vector<std::string> allowed_hosts_;
  std::unique_ptr<evhttp, FreeHttp> http_;
  evconnlistener* listener_ = nullptr;  ///< of http_
  EventPtr accept_again_, look_at_ages_, look_at_end_;
  std::function<void()> done_;  ///< if it is to finish
  int idle_looks_ = 0;
  std::map<std::pair<int, std::string>, Connection> connections_;  ///< by descriptor and other end
  std::uint64_t last_number_ = 0;
  std::size_t most_connections_ = 0;  ///< there are not more than that
  std::set<std::shared_ptr<Waiting>> waiting_;
};

}  // namespace rtev::agent
