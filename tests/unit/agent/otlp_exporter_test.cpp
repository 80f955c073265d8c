// SPDX-License-Identifier: MIT
#include "agent/otlp_exporter.hpp"

#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "support/pprof_check.hpp"
#include "unit/agent/network_fixture.hpp"

namespace rtev::agent {
namespace {

using namespace std::chrono_literals;

TEST(OtlpUrl, HasHostPortAndPath) {
  const auto options = parse_otlp_url("http://collector:4319/otlp/").value();
  EXPECT_EQ(options.host, "collector");
  EXPECT_EQ(options.port, 4319);
  EXPECT_EQ(options.base_path, "/otlp");
  const auto plain = parse_otlp_url("http://10.0.0.1").value();
  EXPECT_EQ(plain.port, 4318);
  EXPECT_EQ(plain.base_path, "");
  EXPECT_TRUE(parse_otlp_url("http://[::1]:4318"));
}

TEST(OtlpUrl, WhatWouldHaveNoEffectIsRefused) {
  for (const char* url :
       {"", "collector", "collector:4318", "//collector", "http://", "http:///v1", "https://collector",
        "grpc://collector:4317", "http://collector:99999", "http://collector:x", "http://user:word@collector",
        "http://collector/?key=1", "http://collector/#x", "http://coll ector", "http://collector/\nx"}) {
    const auto options = parse_otlp_url(url);
    ASSERT_FALSE(options) << url;
    EXPECT_FALSE(options.error().why.empty());
  }
}

/// A collector that gives prepared answers, in order, and 200 afterwards.
class OtlpExporterTest : public NetworkTest {
 protected:
  struct Answer {
    int status = 0;  ///< 0: closes the connection; -1: never answers
    std::string retry_after{};
  };
  struct Received {
    std::string path, body;
    std::map<std::string, std::string> headers{};
    Clock::time_point at{};
  };

  void listen(const char* address = "127.0.0.1") {
    server_.reset(::evhttp_new(base.get()));
    evhttp_bound_socket* const bound = ::evhttp_bind_socket_with_handle(server_.get(), address, 0);
    if (bound == nullptr) GTEST_SKIP() << "cannot listen on " << address;
    sockaddr_storage place{};
    socklen_t size = sizeof place;
    ::getsockname(::evhttp_bound_socket_get_fd(bound), reinterpret_cast<sockaddr*>(&place), &size);
    port_ = ntohs(reinterpret_cast<sockaddr_in&>(place).sin_port);  // at the same place for both versions
    ::evhttp_set_gencb(
        server_.get(),
        [](evhttp_request* request, void* self) { static_cast<OtlpExporterTest*>(self)->serve(request); }, this);
  }
  /// A collector that answers each request with a head that never ends: this text at intervals, as fast as it is taken.
  void pour(std::string text, std::chrono::milliseconds interval) {
    ::signal(SIGPIPE, SIG_IGN);  // the exporter closes its connections
    poured_text_ = std::move(text);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto on_accept = [](evconnlistener*, evutil_socket_t fd, sockaddr*, int, void* self) {
      auto& test = *static_cast<OtlpExporterTest*>(self);
      ++test.connections;
      BuffereventPtr& taken =
          test.pouring_.emplace_back(::bufferevent_socket_new(test.base.get(), fd, BEV_OPT_CLOSE_ON_FREE));
      ::bufferevent_enable(taken.get(), EV_READ | EV_WRITE);
      constexpr std::string_view begin = "HTTP/1.1 200 OK\r\n";
      ::bufferevent_write(taken.get(), begin.data(), begin.size());
    };
    pouring_listener_.reset(::evconnlistener_new_bind(base.get(), on_accept, this, LEV_OPT_CLOSE_ON_FREE, -1,
                                                      reinterpret_cast<const sockaddr*>(&place), sizeof place));
    socklen_t size = sizeof place;
    ::getsockname(::evconnlistener_get_fd(pouring_listener_.get()), reinterpret_cast<sockaddr*>(&place), &size);
    port_ = ntohs(place.sin_port);
    const auto on_time = [](evutil_socket_t, short, void* self) {
      auto& test = *static_cast<OtlpExporterTest*>(self);
      for (const BuffereventPtr& connection : test.pouring_) {
        if (::evbuffer_get_length(::bufferevent_get_output(connection.get())) != 0) continue;
        ::bufferevent_write(connection.get(), test.poured_text_.data(), test.poured_text_.size());
        test.poured_bytes += test.poured_text_.size();
      }
    };
    pouring_timer_.reset(::event_new(base.get(), -1, EV_PERSIST, on_time, this));
    const timeval every{.tv_sec = 0, .tv_usec = std::chrono::microseconds(interval).count()};
    ::event_add(pouring_timer_.get(), &every);
  }
  void stop_listening() { server_.reset(); }

  void start(OtlpOptions options = {}) {
    contents[Request::otlp_metrics] = "metrics";
    if (options.host.empty()) options.host = "127.0.0.1";
    options.port = port_;
    options.interval = 60ms;
    options.timeout = 300ms;
    options.first_retry = 50ms;
    exporter.emplace(base.get(), std::move(options), *client);
  }
  void run_until_received(std::size_t count) {
    run_until([&] { return received.size() >= count; });
  }
  /// Of the metric that counts requests.
  int requests(const std::string& result) {
    const std::string text = exporter->metrics_text(), series = "{result=\"" + result + "\"} ";
    return std::stoi(text.substr(text.find(series) + series.size()));
  }
  void run_until_counted(const std::string& result, int count) {
    run_until([&] { return requests(result) >= count; });
  }

  std::vector<Answer> script{};
  std::vector<Received> received{};
  std::optional<OtlpExporter> exporter;
  std::size_t poured_bytes = 0;
  int connections = 0;  ///< of pour()

 private:
  struct FreeBufferevent {
    void operator()(bufferevent* freed) const { ::bufferevent_free(freed); }
  };
  struct FreeListener {
    void operator()(evconnlistener* freed) const { ::evconnlistener_free(freed); }
  };
  using BuffereventPtr = std::unique_ptr<bufferevent, FreeBufferevent>;

  void serve(evhttp_request* request) {
    Received got{.path = ::evhttp_request_get_uri(request), .body = {}, .headers = {}, .at = Clock::now()};
    evbuffer* const body = ::evhttp_request_get_input_buffer(request);
    got.body.resize(::evbuffer_get_length(body));
    ::evbuffer_remove(body, got.body.data(), got.body.size());
    const evkeyvalq* const headers = ::evhttp_request_get_input_headers(request);
    for (const evkeyval* header = headers->tqh_first; header != nullptr; header = header->next.tqe_next)
      got.headers[header->key] = header->value;
    const std::size_t index = received.size();
    received.push_back(std::move(got));
    const Answer answer = index < script.size() ? script[index] : Answer{.status = 200};
    if (answer.status == 0) return ::evhttp_connection_free(::evhttp_request_get_connection(request));
    if (answer.status < 0) return;
    if (!answer.retry_after.empty())
      ::evhttp_add_header(::evhttp_request_get_output_headers(request), "Retry-After", answer.retry_after.c_str());
    ::evhttp_send_reply(request, answer.status, "x", nullptr);
  }

  std::unique_ptr<evhttp, FreeServer> server_;
  std::unique_ptr<evconnlistener, FreeListener> pouring_listener_;
  EventPtr pouring_timer_;
  std::vector<BuffereventPtr> pouring_;
  std::string poured_text_;
  std::uint16_t port_ = 1;
};

TEST_F(OtlpExporterTest, PushesAgainAndAgain) {
  listen();
  start({.base_path = "/otlp", .headers = {{"Authorization", "Bearer x"}}});
  run_until_received(3);
  run_until_counted("ok", 3);
  EXPECT_EQ(received[0].path, "/otlp/v1/metrics");
  EXPECT_EQ(test::gunzip(received[0].body), "metrics");
  EXPECT_EQ(received[0].headers.at("Content-Type"), "application/x-protobuf");
  EXPECT_EQ(received[0].headers.at("Content-Encoding"), "gzip");
  EXPECT_EQ(received[0].headers.at("Authorization"), "Bearer x");
  EXPECT_EQ(requests("retried"), 0);
  EXPECT_EQ(requests("failed"), 0);
}

TEST_F(OtlpExporterTest, ADefiniteAnswerIsNotAskedForAgain) {
  for (const int status : {400, 401, 404, 413, 500, 301}) script.push_back({.status = status});
  listen();
  start();
  run_until_received(script.size() + 1);
  run_until_counted("ok", 1);
  EXPECT_EQ(requests("failed"), static_cast<int>(script.size()));
  EXPECT_EQ(requests("retried"), 0);
}

TEST_F(OtlpExporterTest, WaitsLongerEachTimeWithoutAnAnswer) {
  script = {{.status = 503}, {.status = 429}, {.status = 502}, {.status = 504}};
  listen();
  start();
  run_until_received(5);
  run_until_counted("ok", 1);
  EXPECT_EQ(requests("retried"), 4);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_GE(received[i + 1].at - received[i].at, 45ms * (1 << i)) << i;  // timers may be early by a tick
  // What was not taken is not kept: newer figures are sent.
  EXPECT_GE(asked[Request::otlp_metrics], 5);
}

TEST_F(OtlpExporterTest, WaitsAsLongAsTheCollectorSays) {
  script = {
      {.status = 503, .retry_after = "1"}, {.status = 429, .retry_after = "0"}, {.status = 429, .retry_after = "soon"}};
  listen();
  start();
  run_until_received(4);
  EXPECT_GE(received[1].at - received[0].at, 950ms);
  // A collector cannot ask to be flooded.
  EXPECT_GE(received[2].at - received[1].at, 90ms);
  EXPECT_GE(received[3].at - received[2].at, 180ms);
}

TEST_F(OtlpExporterTest, SurvivesACollectorThatIsGone) {
  listen();
  stop_listening();
  start();
  run_until_counted("retried", 2);
  EXPECT_EQ(requests("ok"), 0);
  EXPECT_TRUE(received.empty());
}

TEST_F(OtlpExporterTest, MessagesThatCannotBeWrittenDoNotEndIt) {
  const UniqueFd messages{::dup(STDERR_FILENO)}, full{::open("/dev/full", O_WRONLY | O_CLOEXEC)};
  ASSERT_TRUE(messages && full);
  ::dup2(full.get(), STDERR_FILENO);
  listen();
  script = {{500}};
  start();
  EXPECT_NO_THROW(run_until_received(3)) << "fails, succeeds again, goes on";
  ::dup2(messages.get(), STDERR_FILENO);
}

TEST_F(OtlpExporterTest, SurvivesACollectorThatHangsUpOrHangs) {
  script = {{.status = 0}, {.status = -1}};
  listen();
  start();
  run_until_received(3);
  run_until_counted("ok", 1);
  // libevent may try again once by itself after the connection was closed.
  EXPECT_GE(requests("retried"), 1);
  EXPECT_GE(received[2].at - received[1].at, 290ms);
}

TEST_F(OtlpExporterTest, AnAnswerWithoutEndIsGivenUp) {
  std::string lines;
  for (int line = 0; line < 1000; ++line) lines += "X-Header: " + std::string(50, 'x') + "\r\n";
  pour(lines, 1ms);
  start();
  run_until_counted("retried", 3);
  // What its socket holds, and a little more.
  constexpr std::size_t most = 8 << 20;
  EXPECT_LT(poured_bytes, most * static_cast<std::size_t>(connections));
  EXPECT_EQ(requests("ok"), 0);
}

TEST_F(OtlpExporterTest, AnAnswerThatTricklesIsGivenUp) {
  pour("X", 20ms);
  start();
  const auto begin = Clock::now();
  run_until_counted("retried", 2);
  EXPECT_LT(Clock::now() - begin, 5s);
  EXPECT_GE(connections, 2);
}

TEST_F(OtlpExporterTest, SpansAreKeptUntilTheyAreTaken) {
  script = {{.status = 503}, {.status = 503}, {.status = 503}, {.status = 503}};
  listen();
  contents[Request::otlp_spans] = "spans";
  start({.spans = true});
  const auto taken = [&] {
    return std::ranges::count_if(received, [&](const Received& got) { return got.path == "/v1/traces"; });
  };
  run_until([&] { return taken() >= 3; });
  for (const Received& got : received)
    EXPECT_EQ(test::gunzip(got.body), got.path == "/v1/traces" ? "spans" : "metrics");
  EXPECT_LT(asked[Request::otlp_spans], taken());  // the same ones were sent again
}

TEST_F(OtlpExporterTest, TooManySpansAreDropped) {
  listen();
  std::minstd_rand random(1);
  std::string& spans = contents[Request::otlp_spans];
  spans.resize(OtlpExporter::max_held_bytes + (1 << 16));
  std::ranges::generate(spans, [&] { return static_cast<char>(random() >> 7); });
  start({.spans = true});
  run_until_counted("failed", 2);
  EXPECT_TRUE(std::ranges::none_of(received, [](const Received& got) { return got.path == "/v1/traces"; }));
}

TEST_F(OtlpExporterTest, NothingIsSentWithoutSpans) {
  listen();
  start({.spans = true});
  run_until_received(3);
  EXPECT_TRUE(std::ranges::all_of(received, [](const Received& got) { return got.path == "/v1/metrics"; }));
}

TEST_F(OtlpExporterTest, ConnectsByVersion6) {
  listen("::1");
  if (IsSkipped()) return;
  start({.host = "[::1]"});
  run_until_counted("ok", 1);
}

}  // namespace
}  // namespace rtev::agent
