// SPDX-License-Identifier: MIT
#include "agent/metrics_http.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/listen_socket.hpp"
#include "support/pprof_check.hpp"
#include "unit/agent/network_fixture.hpp"

namespace rtev::agent {
namespace {

using namespace std::chrono_literals;

class MetricsHttpTest : public NetworkTest {
 protected:
  void start(MetricsHttpOptions options = {}) {
    UniqueFd listener = listen_on("127.0.0.1:0").value();
    socklen_t size = sizeof place_;
    ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&place_), &size);
    contents[Request::metrics] = "up 1\n";
    server.emplace(
        base.get(), std::move(listener), *client, [] { return std::string("more 2\n"); }, std::move(options));
  }
  UniqueFd connect() {
    UniqueFd connection(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // Not done yet, as the socket does not block.
    [[maybe_unused]] const int begun =
        ::connect(connection.get(), reinterpret_cast<const sockaddr*>(&place_), sizeof place_);
    return connection;
  }
  static void say(const UniqueFd& connection, std::string_view text) {
    ::send(connection.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  /// All that comes until the server closes the connection.
  std::string answer(const UniqueFd& connection) {
    std::string text;
    run_until([&] {
      std::array<char, 4096> buffer;
      ssize_t size = 0;
      while ((size = ::recv(connection.get(), buffer.data(), buffer.size(), 0)) > 0)
        text.append(buffer.data(), static_cast<std::size_t>(size));
      return size == 0 || (errno != EAGAIN && errno != ENOTCONN);
    });
    return text;
  }
  std::string get(const std::string& request) {
    const UniqueFd connection = connect();
    run_until([&] { return ::send(connection.get(), "", 0, MSG_NOSIGNAL) == 0; });
    say(connection, request);
    return answer(connection);
  }

  std::optional<MetricsHttp> server;

 private:
  sockaddr_storage place_{};
};

TEST_F(MetricsHttpTest, ServesWhatTheTracerSays) {
  start();
  const std::string text = get("GET /metrics HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(text.starts_with("HTTP/1.0 200 OK\r\n")) << text;
  EXPECT_TRUE(text.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n")) << text;
  EXPECT_TRUE(text.ends_with("\r\n\r\nup 1\nmore 2\n")) << text;
  const std::string packed = get("GET /metrics?x=1 HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
  EXPECT_TRUE(packed.contains("Content-Encoding: gzip\r\n"));
  EXPECT_EQ(test::gunzip(packed.substr(packed.find("\r\n\r\n") + 4)), "up 1\nmore 2\n");
  const std::string head = get("HEAD /metrics HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(head.contains("Content-Length: 12\r\n")) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
  EXPECT_TRUE(get("GET /healthz HTTP/1.0\r\n\r\n").ends_with("\r\n\r\nok\n"));
  EXPECT_TRUE(get("GET /x HTTP/1.0\r\n\r\n").contains(" 404 "));
  EXPECT_FALSE(get("POST /metrics HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi").contains(" 200 "));
}

TEST_F(MetricsHttpTest, ClientsThatWaitShareAnAnswer) {
  start();
  std::array<UniqueFd, 5> clients{};
  for (UniqueFd& waiting : clients) {
    waiting = connect();
    run_until([&] { return ::send(waiting.get(), "", 0, MSG_NOSIGNAL) == 0; });
  }
  for (const UniqueFd& waiting : clients) say(waiting, "GET /metrics HTTP/1.0\r\n\r\n");
  for (const UniqueFd& waiting : clients) EXPECT_TRUE(answer(waiting).contains("up 1\n"));
  EXPECT_LE(asked[Request::metrics], 5);
}

TEST_F(MetricsHttpTest, AClientMayLeaveBeforeItsAnswer) {
  start();
  answers = false;
  {
    const UniqueFd leaving = connect();
    run_until([&] { return ::send(leaving.get(), "", 0, MSG_NOSIGNAL) == 0; });
    say(leaving, "GET /healthz HTTP/1.0\r\n\r\n");
    run_until([&] { return asked[Request::health] == 1; });
  }
  answers = true;
  EXPECT_TRUE(get("GET /metrics HTTP/1.0\r\n\r\n").contains("up 1\n"));
}

TEST_F(MetricsHttpTest, FinishesWhatWasAskedAndLeavesTheRest) {
  start();
  const UniqueFd idle = connect(), asking = connect();
  for (const UniqueFd* client : {&idle, &asking})
    run_until([&] { return ::send(client->get(), "", 0, MSG_NOSIGNAL) == 0; });
  answers = false;
  say(asking, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  run_until([&] { return asked[Request::metrics] == 1; });
  bool is_done = false;
  server->finish([&] { is_done = true; });
  // The client connects, and waits for another server.
  const UniqueFd next = connect();
  run_until([&] { return ::send(next.get(), "", 0, MSG_NOSIGNAL) == 0; });
  say(next, "GET /healthz HTTP/1.0\r\n\r\n");
  EXPECT_FALSE(is_done);
  const std::string text = answer(asking);
  EXPECT_TRUE(text.contains(" 503 ")) << text;
  run_until([&] { return is_done; });
  EXPECT_EQ(asked[Request::health], 0);
}

TEST_F(MetricsHttpTest, SaysThatTheTracerDoesNotAnswer) {
  start();
  answers = false;
  EXPECT_TRUE(get("GET /healthz HTTP/1.0\r\n\r\n").contains(" 503 "));
}

TEST_F(MetricsHttpTest, EndsAConnectionThatNeverGetsToThePoint) {
  start({.max_age = 400ms});
  const UniqueFd trickling = connect();
  run_until([&] { return ::send(trickling.get(), "G", 1, MSG_NOSIGNAL) == 1; });
  const auto begin = Clock::now();
  char byte = 0;
  // Less than the limit of a header.
  int sent = 0;
  constexpr int most = 1000;
  run_until([&] {
    if (sent++ < most) say(trickling, "E");
    return ::recv(trickling.get(), &byte, 1, 0) == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  });
  EXPECT_GE(Clock::now() - begin, 390ms);
  EXPECT_TRUE(get("GET /metrics HTTP/1.0\r\n\r\n").contains("up 1\n"));
}

TEST_F(MetricsHttpTest, SaysWhichPartIsGone) {
  start();
  contents[Request::health] = "helper: its process has ended\n";
  const std::string text = get("GET /healthz HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(text.starts_with("HTTP/1.0 503 ")) << text;
  EXPECT_TRUE(text.ends_with("\r\n\r\nhelper: its process has ended\n")) << text;
}

TEST_F(MetricsHttpTest, NamesThatOthersMayGiveToItsAddressAreRefused) {
  start({.allowed_hosts = {"*.example.com", "metrics"}});
  const auto status = [&](const std::string& host) {
    return get("GET /metrics HTTP/1.0\r\nHost: " + host + "\r\n\r\n").substr(9, 3);
  };
  for (const char* known : {"127.0.0.1", "127.0.0.1:9464", "[::1]:9464", "localhost:9464", "LocalHost",
                            "node7.example.com:9464", "METRICS"})
    EXPECT_EQ(status(known), "200") << known;
  for (const char* unknown :
       {"evil.test:9464", "127.0.0.1.evil.test", "localhost.evil.test", "example.com.evil.test", "metrics.evil.test",
        "[evil.test]", "evil.test:127.0.0.1", "2130706433.evil.test", "x@127.0.0.1"})
    EXPECT_EQ(status(unknown), "403") << unknown;
  EXPECT_EQ(get("GET /healthz HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n").substr(9, 3), "403");
}

TEST_F(MetricsHttpTest, ConnectionsThatIdleMakeRoom) {
  start();
  std::vector<UniqueFd> idle;
  const auto connect_idle = [&](std::string_view begin) {
    const UniqueFd& connection = idle.emplace_back(connect());
    run_until([&] { return ::send(connection.get(), begin.data(), begin.size(), MSG_NOSIGNAL) >= 0; });
  };
  // A scrape whose answer has still to come stays, though it is the oldest.
  answers = false;
  const UniqueFd scrape = connect();
  run_until([&] { return ::send(scrape.get(), "", 0, MSG_NOSIGNAL) == 0; });
  say(scrape, "GET /metrics HTTP/1.0\r\n\r\n");
  run_until([&] { return asked[Request::metrics] == 1; });
  constexpr int many = 300;
  for (int i = 0; i < many; ++i) connect_idle(i % 2 == 0 ? "" : "GET /metr");
  const auto is_open = [](const UniqueFd& connection) {
    char byte = 0;
    return ::recv(connection.get(), &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
  };
  run_until([&] { return std::ranges::count_if(idle, is_open) < 64; });
  EXPECT_TRUE(is_open(idle.back()));
  EXPECT_FALSE(is_open(idle.front()));
  EXPECT_TRUE(is_open(scrape));
  EXPECT_TRUE(answer(scrape).contains(" 503 "));  // once the tracer has not answered in time
  answers = true;
  const auto begin = Clock::now();
  EXPECT_TRUE(get("GET /healthz HTTP/1.0\r\n\r\n").ends_with("\r\n\r\nok\n"));
  EXPECT_LT(Clock::now() - begin, 3s);
}

}  // namespace
}  // namespace rtev::agent
