// SPDX-License-Identifier: MIT
#include "cli/agent/handover.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

#include "cli/agent/successor.hpp"
#include "helper/channel.hpp"
#include "metrics/carried_metrics.hpp"

namespace rtev::cli {
namespace {

using Channel = std::pair<UniqueFd, UniqueFd>;

UniqueFd any_file() {
  return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

TEST(Handover, MessagesAreReadBack) {
  AgentMessage message{.word = "take", .fields = {{"at", "5"}, {"why", "a=b c\nd"}}};
  const AgentMessage read = decoded(encoded(message));
  EXPECT_EQ(read.word, "take");
  EXPECT_EQ(read.number("at"), 5u);
  EXPECT_EQ(read.field("why"), "a=b cd");
  EXPECT_EQ(read.field("none"), "");
  EXPECT_EQ(read.number("why"), std::nullopt);
}

TEST(Handover, HostileMessagesAreHarmless) {
  for (const std::string text : {"", "\n\n\n", "=", "take\n=5\n", "offer\nlistener=0\nmanager=99999999999999999999"}) {
    const Offer offer = offer_of(decoded(text));
    EXPECT_FALSE(offer.listener);
    EXPECT_FALSE(offer.manager);
    EXPECT_FALSE(offer.watchdog);
  }
  EXPECT_FALSE(offer_of(decoded("offer\nwatchdog=99999999999999")).watchdog);
}

TEST(Handover, AnOfferHasTheSockets) {
  const Channel channel = helper::make_channel().value();
  Offer offer{.version = "1.2",
              .listen = "127.0.0.1:9464",
              .is_passed_socket = true,
              .groups = "{exe}",
              .watchdog = std::chrono::microseconds(7),
              .listener = {},
              .manager = any_file()};
  ASSERT_TRUE(send(channel.first.get(), message_of(std::move(offer))));
  auto message = receive(channel.second.get());
  ASSERT_TRUE(message);
  const Offer got = offer_of(std::move(*message));
  EXPECT_EQ(got.version, "1.2");
  EXPECT_EQ(got.listen, "127.0.0.1:9464");
  EXPECT_TRUE(got.is_passed_socket);
  EXPECT_EQ(got.groups, "{exe}");
  EXPECT_EQ(got.watchdog, std::chrono::microseconds(7));
  EXPECT_FALSE(got.listener);
  EXPECT_TRUE(got.manager);
}

TEST(Handover, FiguresOfAnyLengthArePassed) {
  const Channel channel = helper::make_channel().value();
  const std::string metrics(5'000'000, 'm');
  ASSERT_TRUE(send(channel.first.get(), message_of(Figures{.since_ns = 3, .metrics = metrics, .spans = ""})));
  const auto message = receive(channel.second.get());
  ASSERT_TRUE(message);
  const auto figures = figures_of(*message);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->since_ns, 3u);
  EXPECT_EQ(figures->metrics, metrics);
  EXPECT_EQ(figures->spans, "");
}

TEST(Handover, FiguresThatAreTooLongOrNoFileAreRefused) {
  AgentMessage message{.word = "figures"};
  EXPECT_FALSE(figures_of(message));
  message.fds.push_back(any_file());
  message.fds.push_back(any_file());
  EXPECT_FALSE(figures_of(message));
  message.fds[0] = UniqueFd(::memfd_create("x", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(message.fds[0].get(), MetricSnapshot::max_bytes + 1), 0);
  EXPECT_FALSE(figures_of(message));
}

class SuccessorTest : public testing::Test {
 protected:
  Channel channel = helper::make_channel().value();
  Successor successor;
};

TEST_F(SuccessorTest, SaysFromWhenOnItCounts) {
  EXPECT_FALSE(successor.is_there());
  EXPECT_EQ(successor.welcome(channel.second, {.version = "1"}), "");
  EXPECT_FALSE(channel.second);
  EXPECT_EQ(receive(channel.first.get())->word, "offer");
  EXPECT_EQ(successor.pid(), ::getpid());
  EXPECT_EQ(successor.take(), std::nullopt);
  EXPECT_TRUE(successor.is_there());
  ASSERT_TRUE(send(channel.first.get(), {.word = "take", .fields = {{"at", "77"}}}));
  EXPECT_EQ(successor.take(), 77u);
  EXPECT_TRUE(successor.enables());
  ASSERT_TRUE(send(channel.first.get(), {.word = "take", .fields = {{"at", "77"}, {"enable", "0"}}}));
  EXPECT_EQ(successor.take(), 77u);
  EXPECT_FALSE(successor.enables());
  EXPECT_TRUE(successor.give({.since_ns = 1, .metrics = "m", .spans = "s"}));
  EXPECT_EQ(figures_of(*receive(channel.first.get()))->spans, "s");
}

TEST_F(SuccessorTest, ThereIsOneAtATime) {
  successor.welcome(channel.second, {});
  Channel other = helper::make_channel().value();
  EXPECT_EQ(decoded(successor.welcome(other.second, {})).word, "failed");
  EXPECT_TRUE(other.second);
  channel.first.reset();
  EXPECT_FALSE(successor.is_there());
  EXPECT_EQ(successor.take(), std::nullopt);
  EXPECT_EQ(successor.welcome(other.second, {}), "");
  EXPECT_FALSE(other.second);
}

TEST_F(SuccessorTest, OneThatIsRefusedLearnsWhy) {
  successor.welcome(channel.second, {});
  successor.refuse("busy");
  receive(channel.first.get());
  EXPECT_EQ(receive(channel.first.get())->field("why"), "busy");
  EXPECT_FALSE(successor.give({}));
}

}  // namespace
}  // namespace rtev::cli
