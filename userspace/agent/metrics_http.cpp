// SPDX-License-Identifier: MIT
#include "agent/metrics_http.hpp"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <ranges>
#include <string_view>
#include <utility>

#include "agent/host_check.hpp"
#include "formats/output/gzip_output.hpp"
#include "metrics/prometheus_text.hpp"

namespace rtev::agent {
namespace {

constexpr ev_ssize_t max_header_bytes = 8 << 10;
constexpr int idle_seconds = 5;

/// Connections at a time. The process has 64 descriptors, and needs some for the tracer's answers and for pushes.
constexpr std::size_t max_connections = 48;
/// More than the process has. Beyond, connections are not looked at.
constexpr rlim_t most_descriptors = 1024;
/// How many connections end when there are too many: to find the oldest ones takes a look at all.
constexpr std::size_t ended_at_once = 16;
/// Until connections that were ended are closed.
constexpr timeval accept_pause{.tv_sec = 0, .tv_usec = 10'000};

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

constexpr int forbidden = 403;
constexpr std::string_view unknown_host =
    "forbidden: the Host header is no address, and no name that this agent knows: --allow-host adds names\n";

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
                         Options options)
    : tracer_(tracer),
      more_(std::move(more)),
      allowed_hosts_(std::move(options.allowed_hosts)),
      http_(::evhttp_new(base)) {
  ::evhttp_set_max_headers_size(http_.get(), max_header_bytes);
  ::evhttp_set_max_body_size(http_.get(), 1);
  ::evhttp_set_timeout(http_.get(), idle_seconds);
  ::evhttp_set_allowed_methods(http_.get(), EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
  ::evhttp_set_gencb(
      http_.get(), [](evhttp_request* request, void* self) { static_cast<MetricsHttp*>(self)->serve(request); }, this);
  // Called for each connection that is accepted. evhttp makes the bufferevent if this does not.
  ::evhttp_set_bevcb(
      http_.get(),
      [](event_base*, void* self) -> bufferevent* {
        static_cast<MetricsHttp*>(self)->on_accepted();
        return nullptr;
      },
      this);
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
  const auto interval = std::chrono::duration_cast<std::chrono::microseconds>(options.max_age) / looks;
  constexpr std::int64_t second_us = 1'000'000;
  const timeval every{.tv_sec = interval.count() / second_us, .tv_usec = interval.count() % second_us};
  ::event_add(look_at_ages_.get(), &every);
  // Its argument is that of evhttp, so the server is found by a static.
  static MetricsHttp* server = nullptr;
  server = this;
  ::evconnlistener_set_error_cb(listener_, [](evconnlistener*, void*) { server->pause_accepting(); });
}

/// Those that wait for a connection get one when others have ended. Also without a descriptor for the next connection:
/// the listener stays readable then, and would keep the loop busy.
void MetricsHttp::pause_accepting() {
  ::evconnlistener_disable(listener_);
  ::event_add(accept_again_.get(), &accept_pause);
}

/// The descriptor is not known yet: libevent sets it afterwards.
void MetricsHttp::on_accepted() {
  if (++most_connections_ < max_connections) return;
  look_at_connections();
  if (most_connections_ < max_connections) return;
  end_oldest(ended_at_once);
  pause_accepting();
}

/// Finds the connections that there are. libevent has no list of them.
void MetricsHttp::look_at_connections() {
  const auto before = std::exchange(connections_, {});
  const std::uint16_t port = port_of(::getsockname, ::evconnlistener_get_fd(listener_));
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto end = static_cast<int>(std::min(limit.rlim_cur, most_descriptors));
  for (int fd = 0; port != 0 && fd < end; ++fd) {
    std::string peer;
    // What has the port of the listener, and is connected, was accepted from it.
    if (port_of(::getsockname, fd) != port || port_of(::getpeername, fd, &peer) == 0) continue;
    const auto known = before.find({fd, peer});
    connections_[{fd, peer}] = known != before.end() ? known->second : Connection{.number = ++last_number_};
  }
  most_connections_ = connections_.size();
}

/// Those that ask for nothing first.
void MetricsHttp::end_oldest(std::size_t count) {
  std::vector<std::pair<Connection, int>> oldest;
  for (const auto& [key, connection] : connections_) oldest.emplace_back(connection, key.first);
  std::ranges::sort(oldest, {},
                    [](const auto& entry) { return std::pair(entry.first.is_answered, entry.first.number); });
  for (const auto& [connection, fd] : oldest | std::views::take(count)) ::shutdown(fd, SHUT_RDWR);
}

/// The timeout of evhttp is for idle connections: one that sends a byte now and then would stay for ever.
void MetricsHttp::end_old_connections() {
  look_at_connections();
  for (auto& [key, connection] : connections_)
    // What has arrived is still answered.
    if (++connection.looks > looks) ::shutdown(key.first, SHUT_RD);
}

/// From its request on, until its answer is sent.
void MetricsHttp::note_answered(evhttp_connection* connection, bool is_answered) {
  const int fd = ::bufferevent_getfd(::evhttp_connection_get_bufferevent(connection));
  std::string peer;
  if (port_of(::getpeername, fd, &peer) == 0) return;
  auto [entry, is_new] = connections_.try_emplace({fd, peer});
  if (is_new) entry->second.number = ++last_number_;
  entry->second.is_answered = is_answered;
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
  look_at_connections();
  if (connections_.empty() || idle_looks_ > max_idle_looks) done_();
}

void MetricsHttp::serve(evhttp_request* request) {
  if (done_) ::evhttp_add_header(::evhttp_request_get_output_headers(request), "Connection", "close");
  note_answered(::evhttp_request_get_connection(request), true);
  ::evhttp_request_set_on_complete_cb(
      request,
      [](evhttp_request* answered, void* self) {
        static_cast<MetricsHttp*>(self)->note_answered(::evhttp_request_get_connection(answered), false);
      },
      this);
  const char* const host = ::evhttp_find_header(::evhttp_request_get_input_headers(request), "Host");
  if (host != nullptr && !is_known_host(host, allowed_hosts_))
    return reply(request, forbidden, "Forbidden", "text/plain", unknown_host);
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
  if (what == Request::health && !content->empty())
    return reply(request, HTTP_SERVUNAVAIL, "Service Unavailable", "text/plain", *content);
  if (what == Request::health) return reply(request, HTTP_OK, "OK", "text/plain", "ok\n");
  const std::string text = *content + more_();
  if (!takes_gzip(request)) return reply(request, HTTP_OK, "OK", prometheus_content_type, text);
  ::evhttp_add_header(::evhttp_request_get_output_headers(request), "Content-Encoding", "gzip");
  reply(request, HTTP_OK, "OK", prometheus_content_type, gzip_compressed(text));
}

}  // namespace rtev::agent
