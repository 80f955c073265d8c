// SPDX-License-Identifier: MIT
#include "agent/metrics_http.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string>

#include "agent/listen_socket.hpp"
#include "support/pprof_check.hpp"
#include "unit/agent/network_fixture.hpp"

namespace rtev::agent {
namespace {

using namespace std::chrono_literals;

class MetricsHttpTest : public NetworkTest {
 protected:
  void start(std::chrono::milliseconds max_age = std::chrono::minutes(1)) {
    UniqueFd listener = listen_on("127.0.0.1:0").value();
    socklen_t size = sizeof place_;
    ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&place_), &size);
    contents[Request::metrics] = "up 1\n";
    server.emplace(base.get(), std::move(listener), *client, [] { return std::string("more 2\n"); }, max_age);
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
  say(asking, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
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
  start(400ms);
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

}  // namespace
}  // namespace rtev::agent
