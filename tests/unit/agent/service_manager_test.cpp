// SPDX-License-Identifier: MIT
#include "agent/service_manager.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "support/temp_dir.hpp"

namespace rtev::agent {
namespace {

class ServiceManagerTest : public testing::Test {
 protected:
  ~ServiceManagerTest() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(name);
  }
  void listen(const std::string& path) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    path.copy(address.sun_path, path.size());
    if (path[0] == '@') address.sun_path[0] = '\0';
    socket_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ASSERT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size())),
              0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  std::string received() {
    std::array<char, 256> text{};
    const ssize_t size = ::recv(socket_.get(), text.data(), text.size(), 0);
    return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string();
  }
  test::TempDir dir;

 private:
  UniqueFd socket_;
};

TEST_F(ServiceManagerTest, WithoutOneNothingHappens) {
  const ServiceManager manager;
  manager.notify("READY=1");
  EXPECT_EQ(manager.watchdog_interval(), std::nullopt);
}

TEST_F(ServiceManagerTest, TellsItByDatagrams) {
  listen(dir / "notify");
  ::setenv("WATCHDOG_USEC", "3000000", 1);
  const ServiceManager manager;
  EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
  EXPECT_EQ(std::getenv("WATCHDOG_USEC"), nullptr);
  EXPECT_EQ(manager.watchdog_interval(), std::chrono::microseconds(1'500'000));
  manager.notify("READY=1");
  EXPECT_EQ(received(), "READY=1");
}

TEST_F(ServiceManagerTest, TheSocketMayHaveAnAbstractName) {
  listen("@rtev-test-" + std::to_string(::getpid()));
  const ServiceManager manager;
  manager.notify("STOPPING=1");
  EXPECT_EQ(received(), "STOPPING=1");
}

TEST_F(ServiceManagerTest, TheWatchdogMayBeForAnotherProcess) {
  listen(dir / "notify");
  ::setenv("WATCHDOG_USEC", "3000000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid() + 1).c_str(), 1);
  EXPECT_EQ(ServiceManager().watchdog_interval(), std::nullopt);
}

TEST_F(ServiceManagerTest, ABadEnvironmentIsNoFailure) {
  const std::string paths[]{"x", "/", dir / "none", std::string(200, '/')};
  for (const std::string& path : paths) {
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
    ::setenv("WATCHDOG_USEC", "soon", 1);
    const ServiceManager manager;
    manager.notify("READY=1");
    EXPECT_EQ(manager.watchdog_interval(), std::nullopt);
  }
}

}  // namespace
}  // namespace rtev::agent
