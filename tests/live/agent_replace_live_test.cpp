// SPDX-License-Identifier: MIT
// `rtev-bpf agent --replace`: the next agent begins before the last one ends, and no event is lost or counted twice.
#include <grp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <future>
#include <thread>

#include "agent/listen_socket.hpp"
#include "base/clock.hpp"
#include "cli/agent/handover.hpp"
#include "cli/own_directory.hpp"
#include "live/agent_fixture.hpp"
#include "live/hostile_enable_fixture.hpp"
#include "support/files.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

using namespace std::chrono_literals;

/// An agent that has taken the place of another one. The destructor ends it.
class NextAgent {
 public:
  explicit NextAgent(pid_t pid) : pid_(pid) {}
  NextAgent(NextAgent&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  NextAgent& operator=(NextAgent&&) = delete;
  ~NextAgent() {
    if (pid_ > 0) ::kill(pid_, SIGTERM);
  }
  pid_t pid() const { return pid_; }
  bool is_there() const { return ::kill(pid_, 0) == 0; }

 private:
  pid_t pid_;
};

bool is_cumulative(const std::string& name) {
  return std::ranges::any_of(std::array{"_total", "_bucket", "_sum", "_count"},
                             [&](const char* suffix) { return name.ends_with(suffix); });
}

/// Scrapes all the time, as several Prometheus servers would.
class Scraper {
 public:
  explicit Scraper(std::uint16_t port) : thread_([this, port](const std::stop_token& stop) { run(port, stop); }) {}

  /// What went wrong until now.
  Strings problems() {
    thread_.request_stop();
    thread_.join();
    return problems_;
  }
  int count() const { return count_; }

 private:
  void run(std::uint16_t port, const std::stop_token& stop) {
    Exposition last;
    while (!stop.stop_requested()) {
      HttpResponse response;
      try {
        response = http(port, "/metrics");
      } catch (const std::exception& error) {
        problems_.emplace_back(error.what());
        continue;
      }
      if (response.status != 200) {
        problems_.push_back("status " + std::to_string(response.status));
        continue;
      }
      Exposition now = Exposition::parse(response.body);
      for (const auto& [series, value] : last.values) {
        if (!is_cumulative(series.first)) continue;
        const auto found = now.values.find(series);
        if (found == now.values.end() || found->second < value)
          problems_.push_back(series.first + ::testing::PrintToString(series.second) + " fell from " +
                              std::to_string(value));
      }
      last = std::move(now);
      ++count_;
    }
  }

  Strings problems_;
  std::atomic<int> count_ = 0;
  std::jthread thread_;
};

class AgentReplaceLive : public AnalysisLive {
 protected:
  /// Runs `rtev-bpf agent --listen LISTEN ARGUMENTS --replace PID`, not in the process group of the test.
  Outcome replace(pid_t pid, Strings arguments = {}, std::map<std::string, std::string> env = {},
                  const std::string& listen = "127.0.0.1:0") {
    const std::string log = dir / ("log" + std::to_string(++logs_));
    Strings command{"sh",       "-c",  "exec setsid -w \"$@\" > '" + log + "' 2>&1", "sh", tool(), "agent",
                    "--listen", listen};
    command.insert(command.end(), arguments.begin(), arguments.end());
    // If the test does not come to end the agent, it ends by itself.
    command.insert(command.end(), {"--replace", std::to_string(pid), "--duration", "170s"});
    Process process({.argv = command, .env = std::move(env)});
    Outcome outcome = process.wait();
    outcome.err = read_file(log);
    return outcome;
  }
  NextAgent replaced(pid_t pid, const Strings& arguments = {}, std::map<std::string, std::string> env = {}) {
    const Outcome outcome = replace(pid, arguments, std::move(env));
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
    const std::string said = "rtev-bpf: agent ";
    const std::size_t at = outcome.err.find(said);
    if (at == std::string::npos) {
      ADD_FAILURE() << outcome.err;
      return NextAgent(0);
    }
    EXPECT_THAT(outcome.err, HasSubstr("has replaced agent " + std::to_string(pid) + " "));
    EXPECT_THAT(outcome.err, HasSubstr("counters go on"));
    return NextAgent(std::stoi(outcome.err.substr(at + said.size())));
  }

 private:
  int logs_ = 0;
};

TEST_F(AgentReplaceLive, NoEventIsLostOrCountedTwice) {
  const Strings options{"--group", "{exe}", "--user-events", "*"};
  Agent first(options);
  const std::string path = dir / "whole.fxt";
  Tracer whole({"-q"}, {.format = {"record", "-o", path}});
  Process program(copied(with_events("ticking"), "ticks"), "ready");
  run_to_end(copied(with_events("busy_alloc", {"5"}), "ended"));
  const Exposition before = first.scrape_until_ended("ended", 1);
  const std::uint16_t port = first.port();
  Scraper scraper(port);

  const NextAgent second = replaced(first.pid(), options);
  const Outcome last = first.process().wait();
  EXPECT_EQ(last.status.code(), 0) << last.err;
  EXPECT_THAT(last.err, HasSubstr("Agent " + std::to_string(second.pid()) + " has taken over"));
  const NextAgent third = replaced(second.pid(), options);
  EXPECT_TRUE(third.is_there());

  program.go();
  const std::string wrote = program.line_with("wrote ");
  const double events = std::stod(wrote.substr(wrote.find(' ')));
  const Labels ticks{{"group", "ticks"}};
  const auto exposed = [&] { return Exposition::parse(http(port, "/metrics").body); };
  const Labels tick{{"group", "ticks"}, {"event", "tick"}};
  Exposition now;
  EXPECT_TRUE(poll_until([&] {
    now = exposed();
    return now.value("ocaml_user_events_total", tick) >= events;
  }));
  EXPECT_EQ(now.value("ocaml_user_events_total", tick), events);
  EXPECT_THAT(scraper.problems(), IsEmpty());
  EXPECT_GT(scraper.count(), 10);

  // A group without processes is still there.
  const Labels ended{{"group", "ended"}};
  for (const char* name : {"ocaml_gc_minor_collections_total", "ocaml_process_starts_total"})
    EXPECT_EQ(now.value(name, ended), before.value(name, ended)) << name;

  // Pauses are those of a recording of the whole time.
  EXPECT_EQ(whole.interrupt().status.code(), 0);
  const Json latency = report({"latency", "-i", path, "-p", std::to_string(program.pid())});
  const Json stats = report({"stats", "-i", path, "-p", std::to_string(program.pid())});
  double count = 0, sum = 0;
  for (const auto& [series, value] : now.values) {
    const auto& [name, labels] = series;
    if (!labels.contains("group") || labels.at("group") != "ticks") continue;
    if (name == "ocaml_gc_pause_duration_seconds_count") count += value;
    if (name == "ocaml_gc_pause_duration_seconds_sum") sum += value;
  }
  const Json pauses = process_in(latency, program.pid());
  EXPECT_EQ(count, pauses.at("count"));
  EXPECT_NEAR(sum, pauses.at("total_ns").get<double>() / 1e9, 1e-9);
  EXPECT_EQ(now.value("ocaml_gc_minor_collections_total", ticks),
            process_in(stats, program.pid()).at("collections").at("minor"));
}

TEST_F(AgentReplaceLive, WhatGoesWrongLeavesTheLastOneRunning) {
  Agent first({"--user-events", "*"}), other;
  std::ofstream(dir / "bad.conf") << "max-grups = 3\n";
  EXPECT_EQ(replace(first.pid(), {"--config", dir / "bad.conf"}).status.code() == 0, false);
  const Outcome taken = replace(first.pid(), {}, {}, "127.0.0.1:" + std::to_string(other.port()));
  EXPECT_EQ(taken.status.code(), 1) << taken.err;
  const Outcome none = replace(1);
  EXPECT_EQ(none.status.code(), 1);
  EXPECT_THAT(none.err, AllOf(HasSubstr("cannot replace"), HasSubstr("hint:")));
  Tracer recorder({"--keep", "1s", "--dumps", dir / "dumps"}, {.format = {"record"}});
  const Outcome recording = replace(recorder.process().pid());
  EXPECT_EQ(recording.status.code(), 1);
  EXPECT_THAT(recording.err, HasSubstr("only agents can be replaced"));
  EXPECT_TRUE(first.process().running());
  EXPECT_EQ(first.scrape().value("rtev_bpf_groups_folded_total"), 0);

  // Another one may still take its place.
  const NextAgent next = replaced(first.pid(), {"--user-events", "*"});
  EXPECT_EQ(first.process().wait().status.code(), 0);
}

TEST_F(AgentReplaceLive, NoOtherUserCanAskForItsPlace) {
  const Agent agent;
  const std::string path = cli::runtime_directory() + "/agent-" + std::to_string(agent.pid()) + ".sock";
  ASSERT_TRUE(fs::is_socket(path));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    constexpr uid_t nobody = 65534;
    const int asks = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0 ||
        ::setresuid(nobody, nobody, nobody) != 0)
      ::_exit(0);
    ::_exit(::connect(asks, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(stranger, &status, 0), stranger);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), EACCES);
}

TEST_F(AgentReplaceLive, ANextOneThatEndsEarlyChangesNothing) {
  Agent first;
  auto replacing = std::async(std::launch::async, [&] { return replace(first.pid()); });
  // It runs in a process group of its own, and its command line has the pid that it replaces.
  pid_t next = 0;
  const std::string wanted = "--replace" + std::string(1, '\0') + std::to_string(first.pid());
  while (next == 0 && replacing.wait_for(1ms) == std::future_status::timeout) {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      const std::string line{std::istreambuf_iterator<char>(file), {}};
      std::ifstream status(entry.path() / "stat");
      std::string pid, comm, state, parent;
      status >> pid >> comm >> state >> parent;
      if (line.starts_with(tool()) && line.find(wanted) != std::string::npos && parent == "1" && comm == "(rtev-bpf)")
        next = std::stoi(pid);
    }
  }
  ASSERT_GT(next, 0) << replacing.get().err;
  ::kill(next, SIGKILL);
  EXPECT_EQ(replacing.get().status.code(), 1);
  EXPECT_EQ(first.scrape().value("rtev_bpf_groups_folded_total"), 0);
  const NextAgent second = replaced(first.pid());
  EXPECT_EQ(first.process().wait().status.code(), 0);
}

/// The test stands for an agent that was started with a socket of the service manager, and that dies too early.
TEST_F(AgentReplaceLive, OneThatDiesAfterItWasAskedLeavesItsSocketAndNoFigures) {
  const std::map<std::string, std::string> env{{"RUNTIME_DIRECTORY", dir / "run"}};
  fs::create_directories(dir / "run" / "recorders");
  fs::permissions(dir / "run" / "recorders", fs::perms::owner_all);
  const UniqueFd control(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = dir / "run" / "recorders" / ("agent-" + std::to_string(::getpid()) + ".sock");
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(::bind(control.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(control.get(), 1), 0);
  auto listener = agent::listen_on("127.0.0.1:0");
  ASSERT_TRUE(listener);
  const std::string served = agent::address_of(*listener);

  auto replacing = std::async(std::launch::async, [&] { return replace(::getpid(), {}, env); });
  const timeval limit{.tv_sec = wait_timeout.count(), .tv_usec = 0};
  ::setsockopt(control.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  UniqueFd connection(::accept4(control.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(connection);
  ::setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const auto next_message = [&] {
    std::array<char, 256> text{};
    const ssize_t size = ::recv(connection.get(), text.data(), text.size(), 0);
    return cli::decoded({text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))});
  };
  EXPECT_EQ(next_message().word, cli::replace_request);
  ASSERT_TRUE(cli::send(connection.get(), cli::message_of({.version = "0.1.9",
                                                           .listen = "127.0.0.1:1",
                                                           .is_passed_socket = true,
                                                           .groups = "{exe}",
                                                           .listener = std::move(*listener)})));
  const cli::AgentMessage taken = next_message();
  EXPECT_EQ(taken.word, "take");
  EXPECT_GT(taken.number("at"), monotonic_ns());
  connection.reset();

  const Outcome outcome = replacing.get();
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("(version 0.1.9)"), HasSubstr("counters begin anew")));
  const NextAgent next(std::stoi(outcome.err.substr(outcome.err.find("rtev-bpf: agent ") + 16)));
  EXPECT_THAT(outcome.err, HasSubstr("Metrics: http://" + served + "/metrics"));
  EXPECT_EQ(http(static_cast<std::uint16_t>(std::stoi(served.substr(served.rfind(':') + 1))), "/healthz").status, 200);
}

TEST_F(AgentReplaceLive, AFlightRecorderKeepsItsTimeAndMakesOneDump) {
  Process program(with_events("long_pause", {"0.3"}), "ready");
  const std::string pid = std::to_string(program.pid());
  const std::map<std::string, std::string> env{{"RUNTIME_DIRECTORY", dir / "run"}};
  const Strings options{"--keep", "3s", "--on", "pause>200ms", "--after", "100ms", "--dumps", dir / "dumps", "-p", pid};
  const auto dumps = [&] {
    Strings found;
    for (const auto& entry : fs::directory_iterator(dir / "dumps"))
      if (entry.path().string().ends_with(".fxt.gz")) found.push_back(entry.path());
    return found;
  };
  Agent first(options, env);
  // Trouble that goes on while one replaces the other.
  auto replacing = std::async(std::launch::async, [&] { return replaced(first.pid(), options, env); });
  do {
    program.go_until("paused");
  } while (replacing.wait_for(0s) == std::future_status::timeout);
  const NextAgent second = replacing.get();
  for (int i = 0; i < 3; ++i) program.go_until("paused");
  EXPECT_EQ(first.process().wait().status.code(), 0);
  // What is kept is there at once: it has events from before the last one ended.
  const Outcome snap = run_tool({"snap"}, {.argv = {}, .env = env});
  EXPECT_EQ(snap.status.code(), 0) << snap.err;
  ASSERT_THAT(dumps(), SizeIs(2));
  EXPECT_EQ(std::ranges::count_if(dumps(), [](const std::string& name) { return name.contains("-pause-"); }), 1);
  for (const std::string& dump : dumps()) EXPECT_GE(report({"pauses", "-i", dump})["pauses"].size(), 1u) << dump;
}

TEST_F(AgentReplaceLive, EventsThatWereSwitchedOnStayOnUntilTheNextOneEnds) {
  Process program({.argv = {ocaml_program("ticking")}, .env = {{"OCAML_RUNTIME_EVENTS_DIR", dir.path()}}}, "ready");
  const Strings options{"--enable", "-p", std::to_string(program.pid()), "--group", "{exe}", "--user-events", "*"};
  const Labels tick{{"group", "ticking"}, {"event", "tick"}};
  Agent first(options);
  first.scrape_until([&](const Exposition& now) { return now.has("ocaml_user_events_total", tick); });
  const std::uint16_t port = first.port();
  NextAgent second = replaced(first.pid(), options);
  EXPECT_EQ(first.process().wait().status.code(), 0);
  EXPECT_TRUE(fs::exists(ring_of(program.pid())));
  const auto ticks = [&] {
    return Exposition::parse(http(port, "/metrics").body).value("ocaml_user_events_total", tick);
  };
  EXPECT_TRUE(poll_until([&, before = ticks()] { return ticks() > before; }));
  ::kill(second.pid(), SIGTERM);
  EXPECT_TRUE(poll_until([&] { return !second.is_there(); }));
  EXPECT_TRUE(poll_until([&] { return !fs::exists(ring_of(program.pid())); }));
}

TEST_F(AgentReplaceLive, EventsThatWereSwitchedOnGoOffIfTheNextOneDoesNotCare) {
  Process program({.argv = {ocaml_program("ticking")}, .env = {{"OCAML_RUNTIME_EVENTS_DIR", dir.path()}}}, "ready");
  Agent first({"--enable", "-p", std::to_string(program.pid())});
  ASSERT_TRUE(
      poll_until([&] { return fs::exists(ring_of(program.pid())) && fs::file_size(ring_of(program.pid())) > 0; }));
  const NextAgent second = replaced(first.pid());
  EXPECT_EQ(first.process().wait().status.code(), 0);
  EXPECT_FALSE(fs::exists(ring_of(program.pid())));
}

TEST_F(AgentReplaceLive, AnAttemptThatDoesNotEndLeavesNothing) {
  const fs::path rings = dir / "rings";
  fs::create_directory(rings);
  fs::permissions(rings, fs::perms::owner_all);
  Process program({.argv = {attack_program("rtev-attack-enabled"), "killed-entry", rings},
                   .env = {{"OCAML_RUNTIME_EVENTS_DIR", rings}}},
                  "ready");
  Agent first({"--enable", "-p", std::to_string(program.pid())});
  program.lines_until("replaced");
  EXPECT_THAT(files_in(rings), SizeIs(1));
  // Not its supervisor, nor the guardian.
  for (const pid_t pid : family_of(first.pid()))
    if (comm_of(pid) == "rtev-enabler" && children_of(pid).empty()) ::kill(pid, SIGSTOP);
  const NextAgent second = replaced(first.pid(), {"--enable", "-n", "another"});
  EXPECT_EQ(first.process().wait().status.code(), 0);
  EXPECT_THAT(files_in(rings), IsEmpty());
  for (const fs::path& entry : files_in("/run/rtev-bpf/hooks"))
    EXPECT_FALSE(entry.filename().native().starts_with(std::to_string(program.pid()) + "-")) << entry;
}

TEST_F(AgentReplaceLive, TheServiceManagerLearnsIt) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(socket);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = dir / "notify";
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const timeval limit{.tv_sec = wait_timeout.count(), .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const auto next_message = [&] {
    std::array<char, 256> text{};
    const ssize_t size = ::recv(socket.get(), text.data(), text.size(), 0);
    return std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  };
  const auto message_but_watchdog = [&] {
    std::string message = next_message();
    for (int i = 0; i < 100 && message == "WATCHDOG=1"; ++i) message = next_message();
    return message;
  };
  // The queue of the socket has room for few messages.
  Agent first({}, {{"NOTIFY_SOCKET", path}, {"WATCHDOG_USEC", "2000000"}});
  EXPECT_EQ(message_but_watchdog(), "READY=1");
  const NextAgent second = replaced(first.pid());
  EXPECT_EQ(message_but_watchdog(), "MAINPID=" + std::to_string(second.pid()));
  EXPECT_EQ(message_but_watchdog(), "READY=1");
  EXPECT_EQ(first.process().wait().status.code(), 0);
  EXPECT_EQ(next_message(), "WATCHDOG=1");  // of the second
}

}  // namespace
}  // namespace rtev::test
