// SPDX-License-Identifier: MIT
#include "agent/metrics_http.hpp"

#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <string_view>
#include <utility>

#include "formats/output/gzip_output.hpp"
#include "metrics/prometheus_text.hpp"

namespace rtev::agent {
namespace {

constexpr ev_ssize_t max_header_bytes = 8 << 10;
constexpr int idle_seconds = 5;
/// After all descriptors were used.
constexpr timeval accept_pause{.tv_sec = 0, .tv_usec = 200'000};

/// At the end: how often it is looked whether all is answered, and for how long no connection may have had a request.
constexpr timeval end_interval{.tv_sec = 0, .tv_usec = 20'000};
constexpr int max_idle_looks = 25;

/// How often a connection is looked at before it is too old.
constexpr int looks = 4;

/// The port of a socket, at this end or the other; 0: it is none, or not connected.
std::uint16_t port_of(int (*name_of)(int, sockaddr*, socklen_t*), int fd, std::string* whole = nullptr) {
  sockaddr_storage place{};
  socklen_t size = sizeof place;
  if (name_of(fd, reinterpret_cast<sockaddr*>(&place), &size) != 0) return 0;
  if (whole != nullptr) whole->assign(reinterpret_cast<const char*>(&place), size);
  if (place.ss_family == AF_INET) return reinterpret_cast<const sockaddr_in&>(place).sin_port;
  return place.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(place).sin6_port : 0;
}

constexpr std::string_view start_page =
    "<!DOCTYPE html><html lang=\"en\"><title>rtev-bpf</title><h1>rtev-bpf agent</h1>"
    "<p><a href=\"/metrics\">Metrics</a> of the OCaml 5 programs of this host, <a "
    "href=\"/healthz\">health</a></p></html>\n";

void reply(evhttp_request* request, int status, const char* reason, const char* type, std::string_view content) {
  evkeyvalq* const headers = ::evhttp_request_get_output_headers(request);
  ::evhttp_add_header(headers, "Content-Type", type);
  ::evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
  // libevent would send the content in answer to HEAD, too.
  if (::evhttp_request_get_command(request) == EVHTTP_REQ_HEAD) {
    ::evhttp_add_header(headers, "Content-Length", std::to_string(content.size()).c_str());
  } else {
    ::evbuffer_add(::evhttp_request_get_output_buffer(request), content.data(), content.size());
  }
  ::evhttp_send_reply(request, status, reason, nullptr);
}

bool takes_gzip(evhttp_request* request) {
  const char* const accepted = ::evhttp_find_header(::evhttp_request_get_input_headers(request), "Accept-Encoding");
  return accepted != nullptr && std::string_view(accepted).find("gzip") != std::string_view::npos;
}

}  // namespace

MetricsHttp::MetricsHttp(event_base* base, UniqueFd listener, TracerClient& tracer, std::function<std::string()> more,
                         std::chrono::milliseconds max_age)
    : tracer_(tracer), more_(std::move(more)), http_(::evhttp_new(base)) {
  ::evhttp_set_max_headers_size(http_.get(), max_header_bytes);
  ::evhttp_set_max_body_size(http_.get(), 1);
  ::evhttp_set_timeout(http_.get(), idle_seconds);
  ::evhttp_set_allowed_methods(http_.get(), EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
  ::evhttp_set_gencb(
      http_.get(), [](evhttp_request* request, void* self) { static_cast<MetricsHttp*>(self)->serve(request); }, this);
  evhttp_bound_socket* const bound = ::evhttp_accept_socket_with_handle(http_.get(), listener.get());
  listener_ = ::evhttp_bound_socket_get_listener(bound);
  [[maybe_unused]] const int owned_by_http = listener.release();
  accept_again_.reset(::event_new(
      base, -1, 0,
      [](evutil_socket_t, short, void* self) { ::evconnlistener_enable(static_cast<MetricsHttp*>(self)->listener_); },
      this));
  look_at_ages_.reset(::event_new(
      base, -1, EV_PERSIST,
      [](evutil_socket_t, short, void* self) { static_cast<MetricsHttp*>(self)->end_old_connections(); }, this));
  const auto interval = std::chrono::duration_cast<std::chrono::microseconds>(max_age) / looks;
  constexpr std::int64_t second_us = 1'000'000;
  const timeval every{.tv_sec = interval.count() / second_us, .tv_usec = interval.count() % second_us};
  ::event_add(look_at_ages_.get(), &every);
  // Its argument is that of evhttp, so the server is found by a static.
  static MetricsHttp* server = nullptr;
  server = this;
  ::evconnlistener_set_error_cb(listener_, [](evconnlistener*, void*) { server->pause_accepting(); });
}

/// Without a descriptor for the next connection the listener stays readable, and would keep the loop busy.
void MetricsHttp::pause_accepting() {
  ::evconnlistener_disable(listener_);
  ::event_add(accept_again_.get(), &accept_pause);
}

/// The timeout of evhttp is for idle connections: one that sends a byte now and then would stay for ever.
void MetricsHttp::end_old_connections() {
  const auto before = std::exchange(ages_, {});
  const std::uint16_t port = port_of(::getsockname, ::evconnlistener_get_fd(listener_));
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (int fd = 0; port != 0 && fd < static_cast<int>(limit.rlim_cur); ++fd) {
    std::string peer;
    // What has the port of the listener, and is connected, was accepted from it.
    if (port_of(::getsockname, fd) != port || port_of(::getpeername, fd, &peer) == 0) continue;
    const auto known = before.find({fd, peer});
    const int age = known != before.end() ? known->second + 1 : 1;
    ages_[{fd, peer}] = age;
    // What has arrived is still answered.
    if (age > looks) ::shutdown(fd, SHUT_RD);
  }
}

std::size_t MetricsHttp::connections() const {
  const std::uint16_t port = port_of(::getsockname, ::evconnlistener_get_fd(listener_));
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  std::size_t count = 0;
  for (int fd = 0; port != 0 && fd < static_cast<int>(limit.rlim_cur); ++fd)
    if (port_of(::getsockname, fd) == port && port_of(::getpeername, fd) != 0) ++count;
  return count;
}

void MetricsHttp::finish(std::function<void()> done) {
  done_ = std::move(done);
  ::event_del(accept_again_.get());
  ::evconnlistener_disable(listener_);
  look_at_end_.reset(::event_new(
      ::evconnlistener_get_base(listener_), -1, EV_PERSIST,
      [](evutil_socket_t, short, void* self) { static_cast<MetricsHttp*>(self)->look_whether_done(); }, this));
  ::event_add(look_at_end_.get(), &end_interval);
}

/// A client that has connected says at once what it wants. One that keeps its connection for later connects again.
void MetricsHttp::look_whether_done() {
  idle_looks_ = waiting_.empty() ? idle_looks_ + 1 : 0;
  if (connections() == 0 || idle_looks_ > max_idle_looks) done_();
}

void MetricsHttp::serve(evhttp_request* request) {
  if (done_) ::evhttp_add_header(::evhttp_request_get_output_headers(request), "Connection", "close");
  const char* const path = ::evhttp_uri_get_path(::evhttp_request_get_evhttp_uri(request));
  const std::string_view asked = path != nullptr ? path : "";
  if (asked == "/metrics") return ask(request, Request::metrics);
  if (asked == "/healthz") return ask(request, Request::health);
  if (asked == "/" || asked.empty()) return reply(request, HTTP_OK, "OK", "text/html; charset=utf-8", start_page);
  reply(request, HTTP_NOTFOUND, "Not Found", "text/plain", "not found: see /metrics and /healthz\n");
}

void MetricsHttp::ask(evhttp_request* request, Request what) {
  const auto waiting = *waiting_.insert(std::make_shared<Waiting>(request, this)).first;
  ::evhttp_connection_set_closecb(
      ::evhttp_request_get_connection(request),
      [](evhttp_connection*, void* argument) { static_cast<Waiting*>(argument)->request = nullptr; }, waiting.get());
  tracer_.ask(what,
              [this, waiting, what](const std::optional<std::string>& content) { answer(waiting, what, content); });
}

void MetricsHttp::answer(const std::shared_ptr<Waiting>& waiting, Request what,
                         const std::optional<std::string>& content) {
  waiting_.erase(waiting);
  evhttp_request* const request = waiting->request;
  if (request == nullptr) return;
  ::evhttp_connection_set_closecb(::evhttp_request_get_connection(request), nullptr, nullptr);
  if (!content)
    return reply(request, HTTP_SERVUNAVAIL, "Service Unavailable", "text/plain", "the tracer does not answer\n");
  if (what == Request::health) return reply(request, HTTP_OK, "OK", "text/plain", "ok\n");
  const std::string text = *content + more_();
  if (!takes_gzip(request)) return reply(request, HTTP_OK, "OK", prometheus_content_type, text);
  ::evhttp_add_header(::evhttp_request_get_output_headers(request), "Content-Encoding", "gzip");
  reply(request, HTTP_OK, "OK", prometheus_content_type, gzip_compressed(text));
}

}  // namespace rtev::agent
