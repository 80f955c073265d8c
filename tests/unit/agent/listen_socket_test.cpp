// SPDX-License-Identifier: MIT
#include "agent/listen_socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace rtev::agent {
namespace {

TEST(ListenSocket, TakesNumbersOnly) {
  for (const char* text : {"",
                           ":",
                           "9464",
                           ":9464",
                           "127.0.0.1",
                           "127.0.0.1:",
                           "127.0.0.1:x",
                           "127.0.0.1:80x",
                           "127.0.0.1:65536",
                           "127.0.0.1:-1",
                           "localhost:9464",
                           "::1",
                           "::",
                           "::1:9464",
                           "[::1]",
                           "[::1]:",
                           "[::1:9464",
                           "[127.0.0.1:9464",
                           "256.0.0.1:9464",
                           "127.0.0.1:9464 "}) {
    const auto socket = listen_on(text);
    ASSERT_FALSE(socket) << text;
    EXPECT_EQ(socket.error().subject, text);
    EXPECT_FALSE(socket.error().hint.empty());
  }
}

TEST(ListenSocket, ListensOnAPortOfItsOwn) {
  const auto socket = listen_on("127.0.0.1:0");
  ASSERT_TRUE(socket);
  const std::string address = address_of(*socket);
  EXPECT_TRUE(address.starts_with("127.0.0.1:"));
  EXPECT_NE(address, "127.0.0.1:0");
  EXPECT_NE(::fcntl(socket->get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(::fcntl(socket->get(), F_GETFL) & O_NONBLOCK, 0);
  const auto again = listen_on(address);
  ASSERT_FALSE(again);
  EXPECT_TRUE(again.error().hint.contains("--listen"));
}

TEST(ListenSocket, TakesAddressesOfVersion6) {
  const auto socket = listen_on("[::1]:0");
  if (!socket) GTEST_SKIP() << "this host has no IPv6: " << socket.error().why;
  EXPECT_TRUE(address_of(*socket).starts_with("[::1]:"));
}

TEST(ListenSocket, APassedSocketIsForOneProcess) {
  ::setenv("LISTEN_PID", std::to_string(::getpid() + 1).c_str(), 1);
  ::setenv("LISTEN_FDS", "1", 1);
  ::setenv("LISTEN_FDNAMES", "http", 1);
  EXPECT_FALSE(take_passed_socket());
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) EXPECT_EQ(std::getenv(name), nullptr);
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", "x", 1);
  EXPECT_FALSE(take_passed_socket());
}

}  // namespace
}  // namespace rtev::agent
