// SPDX-License-Identifier: MIT
// A tracer that cannot keep up with the scheduler says when it missed what, and reports guess nothing for that time.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "base/unique_fd.hpp"
#include "kernel/sched_buffers.hpp"
#include "live/analysis_fixture.hpp"
#include "live/ready.hpp"

namespace rtev::test {
namespace {

/// Reads what is written to a fifo, but for as long as it is told to leave it there.
class SlowReader {
 public:
  explicit SlowReader(const std::string& path)
      : ours_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)),
        // Asked whether there is room left. It keeps the end of the stream away, too.
        probe_(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)),
        thread_([this](const std::stop_token& stop) { read(stop); }) {}

  void pause() {
    const std::lock_guard lock(mutex_);
    paused_ = true;
  }
  void resume() {
    {
      const std::lock_guard lock(mutex_);
      paused_ = false;
    }
    changed_.notify_all();
  }
  bool is_full() const {
    pollfd room{.fd = probe_.get(), .events = POLLOUT, .revents = 0};
    return ::poll(&room, 1, 0) == 0;
  }
  /// Once nobody writes any more: all that was written.
  std::string finish() {
    probe_.reset();
    thread_.request_stop();
    thread_.join();
    return text_;
  }

 private:
  void read(const std::stop_token& stop) {
    std::array<char, 1 << 16> bytes;
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [this] { return !paused_; });
      pollfd more{.fd = ours_.get(), .events = POLLIN, .revents = 0};
      const bool ready = ::poll(&more, 1, 10) > 0;
      const ssize_t size = ready ? ::read(ours_.get(), bytes.data(), bytes.size()) : -1;
      if (size > 0) {
        text_.append(bytes.data(), static_cast<std::size_t>(size));
      } else if (stop.stop_requested()) {
        return;
      }
    }
  }

  UniqueFd ours_, probe_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool paused_ = false;
  std::string text_;
  std::jthread thread_;
};

/// Two threads on one cpu that wake each other in turns: two switches and two wakeups a round.
class PingPong {
 public:
  explicit PingPong(int cpu) {
    for (auto& ends : pipes_) {
      std::array<int, 2> fds{-1, -1};
      EXPECT_EQ(::pipe2(fds.data(), O_CLOEXEC), 0);
      ends = {UniqueFd(fds[0]), UniqueFd(fds[1])};
    }
    for (std::size_t side = 0; side < players_.size(); ++side)
      players_[side] = std::jthread([this, side, cpu] { play(side, cpu); });
    const char ball = 0;
    EXPECT_EQ(::write(pipes_[0][1].get(), &ball, 1), 1);
  }
  PingPong(const PingPong&) = delete;
  PingPong& operator=(const PingPong&) = delete;
  ~PingPong() { stop(); }

  /// So many more, or an exception where they take too long.
  void play_on(std::uint64_t more) const {
    until([this, end = rounds_ + more] { return rounds_ >= end; });
  }
  template <typename Condition>
  static void until(Condition condition) {
    const std::uint64_t deadline = monotonic_ns() + std::chrono::nanoseconds(patience).count();
    while (!condition()) {
      if (monotonic_ns() > deadline) throw std::runtime_error("a condition was waited for in vain");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  void stop() {
    over_ = true;
    for (auto& player : players_) {
      if (player.joinable()) player.join();
    }
  }

 private:
  void play(std::size_t side, int cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<std::size_t>(cpu), &cpus);
    EXPECT_EQ(::sched_setaffinity(0, sizeof cpus, &cpus), 0);
    char ball = 0;
    while (!over_ && ::read(pipes_[side][0].get(), &ball, 1) == 1) {
      rounds_ += side;
      if (over_ || ::write(pipes_[1 - side][1].get(), &ball, 1) != 1) break;
    }
    // The other one may be waiting.
    [[maybe_unused]] const ssize_t written = ::write(pipes_[1 - side][1].get(), &ball, 1);
  }

  std::array<std::array<UniqueFd, 2>, 2> pipes_;
  std::atomic<std::uint64_t> rounds_ = 0;
  std::atomic<bool> over_ = false;
  std::array<std::jthread, 2> players_;
};

/// Where a cpu's next switch does not begin with who came last, one in between is missing. Each must have been told of.
/// Some hosts' kernels call no tracepoint while a thread of init is the current one: what those leave is not told at
/// all.
void expect_gaps_told(const Trace& trace) {
  constexpr int init = 1;
  struct Last {
    std::uint64_t time;
    Json next;
  };
  std::map<std::uint32_t, Last> cpus;
  std::size_t untold = 0;
  const std::vector<Json> losses = trace.of("lost");
  for (const Json& event : trace.of("switch")) {
    const std::uint32_t cpu = event["cpu"];
    const std::uint64_t time = event["ts"];
    if (const auto last = cpus.find(cpu);
        last != cpus.end() && last->second.next["tid"] != event["prev"]["tid"] && last->second.next["pid"] != init) {
      const bool told = std::ranges::any_of(losses, [&](const Json& loss) {
        return loss.value("reason", "") == "dropped" && loss["buffer"] == cpu % kernel::max_sched_buffers &&
               loss["from"] < time && loss["to"] > last->second.time;
      });
      if (!told && untold++ == 0)
        ADD_FAILURE() << "missing without a word, after " << last->second.time << " " << last->second.next
                      << " and before " << event;
    }
    cpus[cpu] = {time, event["next"]};
  }
  EXPECT_EQ(untold, 0u);
}

constexpr std::uint64_t rounds = 4'000;

class DropsLive : public AnalysisLive {};

TEST_F(DropsLive, SchedulerEventsThatWereDroppedHaveTheirPlaceInTime) {
  const std::string fifo = dir / "stream";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  SlowReader reader(fifo);
  Process process(with_events("collections", {"20", "5", "2"}));
  process.lines_until("ready");
  // To stdout: what goes to a file is written by a thread of its own, with much room before it.
  std::optional<Process> tracer;
  start_ready(tracer, {.argv = {"sh", "-c", R"(exec "$@" > "$0")", fifo, tool(), "-f", "fxt", "--sched", "all",
                                "--buffer", "64K"}});

  PingPong game(0);
  reader.pause();
  game.until([&] { return reader.is_full(); });
  // The tracer stands still at its next write at the latest, and a buffer holds some 600 records.
  game.play_on(rounds);
  const std::uint64_t begin = monotonic_ns();
  process.go();
  process.lines_until("done");
  const std::uint64_t end = monotonic_ns();
  game.play_on(rounds / 4);
  game.stop();
  reader.resume();
  process.go();
  process.wait();
  tracer->signal(SIGINT);
  const Outcome outcome = tracer->wait();
  ASSERT_EQ(outcome.status.code(), 0) << outcome.err;
  const std::string file = dir / "trace.fxt";
  std::ofstream(file, std::ios::binary) << reader.finish();
  const Trace trace = dump(file);

  std::uint64_t told = 0;
  bool covered = false;
  const std::uint64_t start = trace.header["start"], stop = trace.summary["end"];
  for (const Json& loss : trace.of("lost")) {
    if (loss.value("reason", "") != "dropped") continue;
    const std::uint64_t from = loss["from"], to = loss["to"];
    EXPECT_FALSE(loss.value("late", false)) << loss;
    EXPECT_EQ(loss["ts"], from) << "it comes in front of what followed";
    EXPECT_GE(from, start) << loss;
    EXPECT_GE(to, from) << loss;
    EXPECT_LE(to, stop) << loss;
    told += loss["records"].get<std::uint64_t>();
    covered |= loss["buffer"] == 0 && from < begin && to > end;
  }
  EXPECT_TRUE(covered) << "of cpu 0 nothing was read from " << begin << " to " << end;
  const Json& drops = trace.summary["drops"];
  EXPECT_EQ(told, drops["switch"].get<std::uint64_t>() + drops["wakeup"].get<std::uint64_t>());
  EXPECT_GE(told, 4 * rounds / 2) << "the game alone";
  expect_gaps_told(trace);

  // What the program's threads did meanwhile is unknown.
  const std::string pid = std::to_string(process.pid());
  const Json pauses = report({"pauses", "--top", "1000", "-i", file, "-p", pid});
  EXPECT_EQ(pauses["counts"]["scheduler_dropped"], told);
  std::size_t within = 0;
  for (const Json& pause : pauses["pauses"]) {
    const std::uint64_t from = pause["begin_ns"], length = pause["duration_ns"];
    if (from < begin || from + length > end) continue;
    ++within;
    EXPECT_EQ(pause["time_ns"]["unknown"], length) << pause;
  }
  EXPECT_GE(within, 20u) << "minor collections alone";
  const Json latency = report({"latency", "-i", file, "-p", pid});
  EXPECT_EQ(latency["scheduler_dropped"], told);
  EXPECT_GT(latency["all"]["time_ns"]["unknown"], 0u) << latency["all"];
}

}  // namespace
}  // namespace rtev::test
