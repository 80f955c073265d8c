// SPDX-License-Identifier: MIT
// Serves metrics over HTTP, to few clients that are not trusted.
#pragma once

#include <event2/http.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "agent/tracer_client.hpp"
#include "base/unique_fd.hpp"

namespace rtev::agent {

/// GET /metrics, /healthz and /. Requests have 8 KiB, idle connections 5 s, and others max_age. The limit of
/// connections is that of the process's descriptors. One thread, one such object.
class MetricsHttp {
 public:
  /// `listener`: a listening socket, not blocking. `more`: called for each scrape, adds metrics of this process.
  MetricsHttp(event_base* base, UniqueFd listener, TracerClient& tracer, std::function<std::string()> more,
              std::chrono::milliseconds max_age = std::chrono::minutes(1));
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

  void serve(evhttp_request* request);
  void ask(evhttp_request* request, Request what);
  void answer(const std::shared_ptr<Waiting>& waiting, Request what, const std::optional<std::string>& content);
  void pause_accepting();
  std::size_t connections() const;
  void look_whether_done();
  void end_old_connections();

  TracerClient& tracer_;
  std::function<std::string()> more_;
  std::unique_ptr<evhttp, FreeHttp> http_;
  evconnlistener* listener_ = nullptr;  ///< of http_
  EventPtr accept_again_, look_at_ages_, look_at_end_;
  std::function<void()> done_;  ///< if it is to finish
  int idle_looks_ = 0;
  /// Connections by descriptor and other end: how often end_old_connections() has seen them.
  std::map<std::pair<int, std::string>, int> ages_;
  std::set<std::shared_ptr<Waiting>> waiting_;
};

}  // namespace rtev::agent
