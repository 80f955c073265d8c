// SPDX-License-Identifier: MIT
#include "helper/closers.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/background_close.hpp"
#include "base/clock.hpp"
#include "base/file_links.hpp"
#include "support/poll_until.hpp"

namespace rtev::helper {
namespace {

/// A file of which can be seen that it is closed.
struct Watched {
  UniqueFd reader, writer;

  Watched() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    reader.reset(ends[0]);
    writer.reset(ends[1]);
  }
  bool is_closed_within(int timeout_ms) const {
    pollfd closed{.fd = reader.get(), .events = 0, .revents = 0};
    return ::poll(&closed, 1, timeout_ms) == 1 && (closed.revents & POLLHUP) != 0;
  }
};

/// A file that takes seconds to close: a connection that waits for its other end to take what was sent.
struct Slow {
  static constexpr int seconds = 10;
  static constexpr std::uint64_t ns = seconds * std::uint64_t{1'000'000'000};
  UniqueFd writer, reader;  // the reader is closed first, then the writer does not wait

  Slow() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(listener.get(), any, size) != 0 || ::listen(listener.get(), 1) != 0) return;
    ::getsockname(listener.get(), any, &size);
    UniqueFd sender(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(sender.get(), any, size) != 0) return;
    reader.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    constexpr linger wait{.l_onoff = 1, .l_linger = seconds};
    ::setsockopt(sender.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof wait);
    const std::vector<char> data(1 << 16);
    while (::send(sender.get(), data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    writer = std::move(sender);
  }
};

class ClosersTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Slow().writer) GTEST_SKIP() << "needs a loopback device";
  }
  static void close(UniqueFd& file) { close_in_background(file.release()); }

  /// Waits until a process has the file, so that the next one is in another message.
  static void close_and_hand_over(UniqueFd& file) {
    // By name: this thread must not use a descriptor that another one closes.
    const std::string link = "/proc/self/fd/" + std::to_string(file.get());
    const auto target = [&] {
      std::error_code closed;
      return std::filesystem::read_symlink(link, closed);
    };
    const auto open = target();
    close(file);
    EXPECT_TRUE(test::poll_until([&] { return target() != open; }, std::chrono::nanoseconds(Slow::ns)));
  }

  HelperProcess helper_ = HelperProcess::start().value();
  std::optional<Closers> closers_{std::in_place, helper_};
  std::uint64_t begin_ns_ = monotonic_ns();
};

TEST_F(ClosersTest, ClosesManyFiles) {
  std::vector<Watched> files(200);
  for (Watched& file : files) close(file.writer);
  for (const Watched& file : files) EXPECT_TRUE(file.is_closed_within(10'000));
  Watched later;
  close(later.writer);
  EXPECT_TRUE(later.is_closed_within(10'000)) << "and goes on";
}

TEST_F(ClosersTest, AFileThatTakesLongDelaysNoOther) {
  std::vector<Slow> slow(Closers::max_processes - 1);
  for (Slow& file : slow) {
    close_and_hand_over(file.writer);
    Watched other;
    close(other.writer);
    EXPECT_TRUE(other.is_closed_within(10'000));
  }
  EXPECT_LT(monotonic_ns() - begin_ns_, Slow::ns);
}

TEST_F(ClosersTest, TheEndWaitsForNoFile) {
  std::vector<Slow> slow(2 * Closers::max_processes);
  std::vector<Watched> files(200);
  begin_ns_ = monotonic_ns();
  for (Slow& file : slow) close(file.writer);
  for (Watched& file : files) close(file.writer);
  closers_.reset();
  EXPECT_LT(monotonic_ns() - begin_ns_, Slow::ns / 2);
  // Whoever has them goes on.
  slow.clear();
  for (const Watched& file : files) EXPECT_TRUE(file.is_closed_within(20'000));
}

TEST_F(ClosersTest, FilesWaitIfAllProcessesClose) {
  std::vector<Slow> slow(Closers::max_processes);
  for (Slow& file : slow) close_and_hand_over(file.writer);
  Watched file;
  close(file.writer);
  EXPECT_FALSE(file.is_closed_within(100));
  slow.front().reader.reset();
  EXPECT_TRUE(file.is_closed_within(20'000));
}

TEST_F(ClosersTest, FilesThatWaitAreNoDescriptorsOfTheTracer) {
  constexpr std::size_t most_open = 500;
  const auto open_files = [] {
    return static_cast<std::size_t>(std::ranges::distance(std::filesystem::directory_iterator("/proc/self/fd")));
  };
  std::vector<Slow> slow(Closers::max_processes);
  for (Slow& file : slow) close_and_hand_over(file.writer);
  const std::size_t before = open_files();
  for (int file = 0; file < 5000; ++file) {
    close_in_background(::dup(slow.front().reader.get()));
    if (file % 100 == 0) ::usleep(1'000);
  }
  test::poll_until([&] { return open_files() < before + most_open; });
  EXPECT_LT(monotonic_ns(), begin_ns_ + Slow::ns) << "they still wait, as the slow ones do";
}

TEST(BackgroundClose, ClosesAtOnceWithoutProcesses) {
  Watched file;
  close_in_background(file.writer.release());
  EXPECT_TRUE(file.is_closed_within(0));
}

/// Links of more files than a message holds. Without a BPF program the mappings of all files allow to close them.
TEST(LinksTest, AreClosedByAnotherProcess) {
  constexpr std::size_t count = 200;
  constexpr int no_program = -1, timeout_ms = 10'000;
  const auto helper = HelperProcess::start();
  ASSERT_TRUE(helper);
  std::vector<Watched> watched(count);
  std::vector<FileLinks> files(count / 2);
  for (std::size_t i = 0; i < count; ++i) {
    FileLinks& file = files[i / 2];
    if (!file.file) file.file = std::make_shared<UniqueFd>(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    file.links.push_back(std::move(watched[i].writer));
  }
  // Of one file more than a message holds.
  std::vector<Watched> more(count);
  for (Watched& one : more) files.front().links.push_back(std::move(one.writer));
  Watched all;
  files.front().closed = std::move(all.writer);
  {
    const Closers closers(*helper);
    EXPECT_TRUE(close_links_in_background(no_program, std::move(files)).empty());
    for (const auto* links : {&watched, &more})
      for (const Watched& one : *links) EXPECT_TRUE(one.is_closed_within(timeout_ms));
    EXPECT_TRUE(all.is_closed_within(timeout_ms));
  }
}

TEST(LinksTest, AreClosedHereWithoutClosers) {
  Watched watched;
  std::vector<FileLinks> files(1);
  files[0].links.push_back(std::move(watched.writer));
  EXPECT_TRUE(close_links_in_background(-1, std::move(files)).empty());
  EXPECT_TRUE(watched.is_closed_within(0));
}

}  // namespace
}  // namespace rtev::helper
