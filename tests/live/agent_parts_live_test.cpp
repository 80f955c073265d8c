// SPDX-License-Identifier: MIT
// Processes of an agent or a tracer that end before it does, and clients that keep others from the agent.
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "live/agent_fixture.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Children of an agent or a tracer with this name, and theirs.
std::vector<pid_t> processes_of(pid_t parent, const std::string& comm) {
  std::vector<pid_t> all;
  for (const pid_t child : children_of(parent)) {
    if (comm_of(child) != comm) continue;
    all.push_back(child);
    const auto children = children_of(child);
    all.insert(all.end(), children.begin(), children.end());
  }
  return all;
}

/// The helper process. The attachers, which have the same name, have no children.
pid_t helper_of(pid_t parent) {
  for (const pid_t child : children_of(parent))
    if (comm_of(child) == "rtev-helper" && !children_of(child).empty()) return child;
  return 0;
}

void kill_all(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) ::kill(pid, SIGKILL);
}

class AgentPartsLive : public AnalysisLive {
 protected:
  /// The agent ends by itself, soon, and says which process it lacks.
  static void expect_failure(Agent& agent, const std::string& part) {
    const Outcome outcome = agent.process().wait(10s);
    EXPECT_EQ(outcome.status.code(), 1) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("the agent ends"), HasSubstr("its " + part + " process has ended")));
  }
};

TEST_F(AgentPartsLive, WithoutItsHelpersItEnds) {
  Agent agent;
  kill_all(processes_of(agent.pid(), "rtev-helper"));
  HttpResponse health;
  EXPECT_TRUE(poll_until([&] {
    health = http(agent.port(), "/healthz");
    return health.status != 200;
  }));
  EXPECT_EQ(health.status, 503);
  EXPECT_THAT(health.body, HasSubstr("helper: its process has ended\n"));
  expect_failure(agent, "helper");
}

TEST_F(AgentPartsLive, WithoutAnAttacherItEnds) {
  Agent agent;
  const pid_t helper = helper_of(agent.pid());
  ASSERT_GT(helper, 0);
  for (const pid_t child : children_of(agent.pid()))
    if (comm_of(child) == "rtev-helper" && child != helper) {
      ::kill(child, SIGKILL);
      break;
    }
  expect_failure(agent, "attacher");
}

TEST_F(AgentPartsLive, WithoutItsEnablerItEnds) {
  Agent agent({"--enable"});
  const auto enablers = processes_of(agent.pid(), "rtev-enabler");
  ASSERT_THAT(enablers, Not(IsEmpty()));
  ::kill(enablers.front(), SIGKILL);
  expect_failure(agent, "enabler");
}

TEST_F(AgentPartsLive, WithoutItsNetworkProcessesItEnds) {
  Agent agent;
  const auto network = processes_of(agent.pid(), "rtev-network");
  ASSERT_EQ(network.size(), 2U);
  kill_all(network);  // the one that starts the other one first
  expect_failure(agent, "network");
}

TEST_F(AgentPartsLive, WorkersAreReplacedAndCounted) {
  Agent agent;
  const pid_t helper = helper_of(agent.pid());
  ASSERT_GT(helper, 0);
  const auto workers = children_of(helper);
  kill_all(workers);
  const pid_t network = agent.network_worker();
  ::kill(network, SIGKILL);
  ASSERT_TRUE(poll_until([&] { return agent.network_worker() != network && agent.status("/healthz") == 200; }));
  // Every worker that looks at programs has another one in its place.
  const Exposition now = agent.scrape_until([&](const Exposition& seen) {
    return seen.value("rtev_bpf_restarts_total", {{"part", "helper"}}) >= 8 &&
           seen.value("rtev_bpf_restarts_total", {{"part", "network"}}) == 1;
  });
  EXPECT_GE(now.value("rtev_bpf_restarts_total", {{"part", "closer"}}), 1);
  run_to_end(copied(with_events("busy_alloc", {"5"}), "seen-after-that"));
  agent.scrape_until_ended("seen-after-that", 1);
}

TEST_F(AgentPartsLive, ATracerSaysWhatItLacks) {
  Tracer tracer({"-q"});
  ::kill(helper_of(tracer.process().pid()), SIGKILL);
  EXPECT_THAT(tracer.process().error_with("has ended"), HasSubstr("the helper process"));
  tracer.process().signal(SIGINT);
  EXPECT_EQ(tracer.process().wait().status.code(), 0);
}

TEST_F(AgentPartsLive, AnswersWhileConnectionsIdle) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  Agent agent;
  std::vector<UniqueFd> idle;
  constexpr int many = 900;
  for (int i = 0; i < many; ++i) {
    idle.push_back(connect_to(agent.port()));
    if (i % 2 == 0) ::send(idle.back().get(), "GET /metr", 9, MSG_NOSIGNAL);
  }
  // Less than the time after which idle connections end anyway.
  for (const char* const path : {"/healthz", "/metrics"}) {
    const auto begin = Clock::now();
    EXPECT_EQ(agent.status(path), 200) << path;
    EXPECT_LT(Clock::now() - begin, 4s) << path;
  }
}

TEST_F(AgentPartsLive, RequestsToNamesOfOthersAreRefused) {
  const std::string path = dir / "agent.conf";
  std::ofstream(path) << "allow-host = *.example.com\nallow-host = metrics\n";
  Agent agent({"--config", path});
  const auto status = [&](const std::string& host) {
    const UniqueFd connection = connect_to(agent.port());
    const std::string request = "GET /metrics HTTP/1.0\r\nHost: " + host + "\r\n\r\n";
    ::send(connection.get(), request.data(), request.size(), MSG_NOSIGNAL);
    std::string begin(12, '\0');
    return ::recv(connection.get(), begin.data(), begin.size(), MSG_WAITALL) == 12 ? begin.substr(9) : "";
  };
  EXPECT_EQ(status("rebound.test:9464"), "403");
  EXPECT_EQ(status("node7.example.com:9464"), "200");
  EXPECT_EQ(status("metrics"), "200");
  EXPECT_EQ(status("localhost:9464"), "200");
}

}  // namespace
}  // namespace rtev::test
