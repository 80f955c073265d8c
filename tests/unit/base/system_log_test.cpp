// SPDX-License-Identifier: MIT
#include "base/system_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "base/unique_fd.hpp"
#include "support/temp_dir.hpp"

namespace rtev::test {
namespace {

class SystemLog : public testing::Test {
 protected:
  SystemLog() : daemon_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size());
    EXPECT_EQ(::bind(daemon_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  std::string received() const {
    std::array<char, 1024> buffer{};
    const ssize_t size = ::recv(daemon_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }

  TempDir dir_;
  const std::string path_ = dir_ / "log";
  UniqueFd daemon_;
};

TEST_F(SystemLog, TakesMessages) {
  log_notice("events of server/4242 switched on", path_);
  EXPECT_THAT(received(), testing::MatchesRegex("<29>[A-Z][a-z][a-z] [ 1-3][0-9] [0-9:]+ rtev-bpf\\[" +
                                                std::to_string(::getpid()) + "\\]: events of server/4242 switched on"));
}

TEST_F(SystemLog, NeverWaitsForADaemonThatTakesNothing) {
  for (int i = 0; i < 10'000; ++i) log_notice("a message", path_);
  EXPECT_THAT(received(), testing::HasSubstr("a message")) << "the first ones are there";
}

TEST_F(SystemLog, WithoutADaemonNothingHappens) {
  log_notice("a message", dir_ / "none");
  log_notice("a message", std::string(500, 'x'));
  EXPECT_EQ(received(), "");
}

}  // namespace
}  // namespace rtev::test
