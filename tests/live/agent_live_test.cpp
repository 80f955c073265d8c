// SPDX-License-Identifier: MIT
// `rtev-bpf agent` as a server: its endpoints, its groups, its options, and how it and its processes end.
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "live/agent_fixture.hpp"
#include "support/poll_until.hpp"
#include "support/pprof_check.hpp"

namespace rtev::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST_F(AgentLive, ServesFewPathsAndSurvivesItsClients) {
  Agent agent;
  const auto port = agent.port();
  const HttpResponse plain = http(port, "/metrics");
  EXPECT_EQ(plain.status, 200);
  EXPECT_EQ(plain.headers.at("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(plain.body, HasSubstr("rtev_bpf_build_info{version=\""));
  const HttpResponse compressed = http(port, "/metrics", "GET", "Accept-Encoding: deflate, gzip\r\n");
  EXPECT_EQ(compressed.headers.at("content-encoding"), "gzip");
  EXPECT_THAT(gunzip(compressed.body), HasSubstr("rtev_bpf_build_info{version=\""));
  const HttpResponse head = http(port, "/metrics", "HEAD");
  EXPECT_EQ(head.status, 200);
  EXPECT_THAT(head.body, IsEmpty());
  EXPECT_EQ(http(port, "/healthz").body, "ok\n");
  EXPECT_EQ(http(port, "/").status, 200);
  for (const char* path : {"/metric", "/metrics/", "/../metrics", "/metrics%00", "/healthz/x"})
    EXPECT_EQ(http(port, path).status, 404) << path;
  EXPECT_NE(http(port, "/metrics", "DELETE").status, 200);
  EXPECT_NE(http(port, "/metrics", "GET", "X: " + std::string(20'000, 'x') + "\r\n").status, 200);
  const std::string garbages[]{std::string("\0\xff\r\n\r\n", 6), "GET\r\n\r\n", "GET /metrics HTTP/9.9\r\n\r\n"};
  for (const std::string& garbage : garbages) {
    const UniqueFd connection = connect_to(port);
    ::send(connection.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
  }

  // More clients than it takes, none of which says what it wants.
  const pid_t worker = agent.network_worker();
  const Command program = copied(with_events("busy_alloc", {"5"}), "slow-clients");
  std::vector<UniqueFd> slow;
  for (int i = 0; i < 70; ++i) {
    slow.push_back(connect_to(port));
    ::send(slow.back().get(), "GET /metr", 9, MSG_NOSIGNAL);
  }
  const auto begin = Clock::now();
  run_to_end(program);
  agent.scrape_until_ended("slow-clients", 1);
  constexpr auto idle_timeout = 5s, margin = 5s;
  EXPECT_LT(Clock::now() - begin, idle_timeout + margin);
  EXPECT_EQ(agent.network_worker(), worker);  // it did not crash
}

TEST_F(AgentLive, ItsProcessesEndWithIt) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    Agent agent;
    const auto pids = agent.pids();
    EXPECT_GE(pids.size(), 4U);
    EXPECT_EQ(agent.status("/healthz"), 200);
    constexpr auto limit = 2s;
    const auto begin = Clock::now();
    agent.process().signal(signal);
    const ExitStatus status = agent.process().wait().status;
    EXPECT_EQ(signal == SIGTERM ? status.code() : status.signal(), signal == SIGTERM ? 0 : SIGKILL);
    EXPECT_LT(Clock::now() - begin, limit);
    EXPECT_TRUE(poll_until([&] { return std::ranges::all_of(pids, has_ended); }, limit)) << "signal " << signal;
    EXPECT_EQ(agent.status("/healthz"), 0);
  }
}

TEST_F(AgentLive, WhatTalksToTheNetworkComesBack) {
  Agent agent;
  run_to_end(copied(with_events("busy_alloc", {"5"}), "comes-back"));
  const Exposition before = agent.scrape_until_ended("comes-back", 1);
  const pid_t worker = agent.network_worker();
  ASSERT_GT(worker, 0);
  ASSERT_EQ(::kill(worker, SIGKILL), 0);
  ASSERT_TRUE(poll_until([&] { return agent.network_worker() != worker && agent.status("/healthz") == 200; }, 5s));
  // The tracer has counted on.
  const Exposition after = agent.scrape();
  const Labels group{{"group", "comes-back"}};
  EXPECT_EQ(after.value("ocaml_gc_minor_collections_total", group),
            before.value("ocaml_gc_minor_collections_total", group));
}

TEST_F(AgentLive, GroupsAreNamedByServicesAndBounded) {
  Agent standard({"--group", "{service|exe}"}), versions({"--group", "{service}/{version}"}),
      few({"--group", "{service|exe}", "--max-groups", "2"});
  const auto named = [&](const std::string& exe, Labels env) {
    Command command = copied(with_events("steps"), exe);
    command.env.insert(env.begin(), env.end());
    return command;
  };
  const std::string hostile = "q\"uote\\\n\x1b[2J\xff\xfe\xe2\x80\xae";
  const Process programs[]{
      {named("by-name",
             {{"OTEL_SERVICE_NAME", "shop"}, {"OTEL_RESOURCE_ATTRIBUTES", "service.name=x,service.version=2.1"}}),
       "ready"},
      {named("by-attribute", {{"OTEL_RESOURCE_ATTRIBUTES", "a=b,service.name=till%20one"}}), "ready"},
      {named("by-exe", {}), "ready"},
      {named("hostile", {{"OTEL_SERVICE_NAME", hostile}}), "ready"},
      {named("ho\"st\\ile\n\xff", {}), "ready"},
  };
  const auto runs = [](const std::string& group, double count = 1) {
    return [group, count](const Exposition& now) {
      return now.has("ocaml_processes", {{"group", group}}) &&
             now.value("ocaml_processes", {{"group", group}}) >= count;
    };
  };
  standard.scrape_until(runs("shop"));
  standard.scrape_until(runs("till one"));
  standard.scrape_until(runs("by-exe"));
  standard.scrape_until(runs(R"(q"uote\\\x0A\x1B[2J\xFF\xFE\xE2\x80\xAE)"));
  standard.scrape_until(runs(R"(ho"st\\ile\x0A\xFF)"));
  versions.scrape_until(runs("shop/2.1"));
  const Exposition folded = few.scrape_until(runs("other", 3));
  EXPECT_EQ(folded.value("rtev_bpf_groups"), 3);
  EXPECT_GE(folded.value("rtev_bpf_groups_folded_total"), 3);
  for (const Agent* const agent : {&standard, &versions, &few})
    promtool({"check", "metrics"}, http(agent->port(), "/metrics").body);
}

std::size_t bpf_links_of(pid_t pid) {
  std::error_code none;
  return static_cast<std::size_t>(std::ranges::count_if(
      fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", none), [&](const auto& entry) {
        const std::string target = fs::read_symlink(entry.path(), none);
        return target.contains("bpf_link") || target.contains("bpf-link");
      }));
}

/// An agent without programs reads seldom, but asks at once for the service of one that starts. On a busy host the
/// answer may come after its first events: then the start is counted in the group of its file.
TEST_F(AgentLive, AProgramThatStartsAfterIdleTimeIsCountedInItsService) {
  Agent agent({"--group", "{service|exe}", "--name", "late-*"});
  const auto starts_in = [](const Exposition& seen, const std::string& group) {
    const Labels labels{{"group", group}};
    return seen.has("ocaml_process_starts_total", labels) ? seen.value("ocaml_process_starts_total", labels) : 0;
  };
  const Command copy = copied(with_events("steps"), "late-program");
  std::size_t when_busy = bpf_links_of(agent.pid());
  double elsewhere = 0;
  bool was_in_time = false;
  for (int i = 0; i < 5 && !was_in_time; ++i) {
    ASSERT_TRUE(poll_until([&] { return bpf_links_of(agent.pid()) < when_busy; })) << "those of the scheduler stay";
    const std::string name = "service-" + std::to_string(i);
    Command command = copy;
    command.env.insert({"OTEL_SERVICE_NAME", name});
    const Process program(command, "ready");
    const Exposition now =
        agent.scrape_until([&](const Exposition& seen) { return seen.has("ocaml_processes", {{"group", name}}); });
    const double late = starts_in(now, "late-program") - elsewhere;
    EXPECT_EQ(starts_in(now, name) + late, 1);
    was_in_time = late == 0;
    elsewhere += late;
    when_busy = std::max(when_busy, bpf_links_of(agent.pid()));
  }
  EXPECT_TRUE(was_in_time);
}

TEST_F(AgentLive, WithNothingToDoItSaysSo) {
  const Outcome outcome = run_tool({"agent", "--listen", ""});
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("nothing to do"), HasSubstr("--otlp")));
}

TEST_F(AgentLive, OptionsMayComeFromAFile) {
  const std::string path = dir / "agent.conf";
  std::ofstream(path) << "# of a test\ngroup = service-{exe}\nmax-groups = 7\nlisten = 127.0.0.1:1\n";
  Agent agent({"--config", path});  // whose --listen wins
  run_to_end(copied(with_events("hello"), "of-a-file"));
  agent.scrape_until_ended("service-of-a-file", 1);

  const auto refused = [&](const std::string& line) {
    std::ofstream(path) << line << '\n';
    const Outcome outcome = run_tool({"agent", "--config", path});
    EXPECT_NE(outcome.status.code(), 0) << line;
    return outcome.err;
  };
  EXPECT_THAT(refused("max-grups = 7"), AllOf(HasSubstr("max-grups"), HasSubstr("agent.conf")));
  EXPECT_THAT(refused("max-groups = many"), HasSubstr("max-groups"));
  EXPECT_THAT(refused("otlp = https://collector"), HasSubstr("otlp"));
  EXPECT_THAT(run_tool({"agent", "--listen", "localhost:80"}).err, HasSubstr("ADDRESS:PORT"));
}

}  // namespace
}  // namespace rtev::test
