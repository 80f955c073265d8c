// SPDX-License-Identifier: MIT
// Sparse files that look like rings, beside an honest program that must lose nothing.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "live/harness.hpp"
#include "support/ring_file_builder.hpp"

namespace rtev::test {
namespace {

/// This process attacks: it maps files that look like rings, and publishes words that it never wrote.
class HostileLive : public LiveTest {
 protected:
  static constexpr std::uint32_t domains = 4096;

  void SetUp() override {
    LiveTest::SetUp();
    fs::create_directory(shared_memory_);
  }
  void TearDown() override { fs::remove_all(shared_memory_); }

  void add_ring() {
    paths_.push_back(shared_memory_ / (std::to_string(100'000'000 + paths_.size()) + ".events"));
    rings_.emplace_back(paths_.back(), RingFileBuilder::Options{.domains = domains, .words_log2 = 16});
  }
  /// Moves all tails to a function of the round, again and again, while `honest` runs.
  template <typename Tail, typename Honest>
  void attack_while(Tail tail, Honest honest) {
    std::atomic<bool> done = false;
    std::jthread attacker([&] {
      for (std::uint64_t round = 1; !done; ++round)
        for (RingFileBuilder& ring : rings_)
          for (std::uint32_t domain = 0; domain < domains; ++domain) ring.set_tail(domain, tail(round));
    });
    honest();
    done = true;
  }
  std::uint64_t allocated_bytes() const {
    std::uint64_t bytes = 0;
    for (const fs::path& path : paths_) {
      struct stat status{};
      if (::stat(path.c_str(), &status) == 0) bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
    }
    return bytes;
  }
  /// Events of a program that runs beside the attack, all of them delivered.
  Trace trace_beside(const std::function<std::uint64_t(std::uint64_t)>& tail) {
    Process honest(with_events("busy_alloc", {"100"}), "ready");
    Tracer tracer(
        {"--sched", "off", "-d", "60s", "-p", std::to_string(honest.pid()), "-p", std::to_string(::getpid())});
    Trace trace;
    attack_while(tail, [&] {
      honest.go_until("done");
      run_through(honest);
      trace = tracer.stop();
    });
    const auto words = trace.words(honest.pid());
    EXPECT_GT(words.at("delivered"), 0u);
    EXPECT_EQ(words.at("lost"), 0u);
    EXPECT_EQ(words.at("corrupt"), 0u);
    return trace;
  }

 private:
  /// On tmpfs, where reading a hole through a mapping fills it with memory.
  const fs::path shared_memory_ = "/dev/shm/rtev-test." + std::to_string(::getpid());
  std::vector<fs::path> paths_;
  std::deque<RingFileBuilder> rings_;
};

TEST_F(HostileLive, SparseRingsAreNotFilled) {
  for (int ring = 0; ring < 4; ++ring) add_ring();
  const std::uint64_t before = allocated_bytes();
  const Trace trace = trace_beside([](std::uint64_t round) { return round * 1000; });
  EXPECT_GT(trace.words(::getpid()).at("corrupt"), 0u) << "of the attacker";
  EXPECT_LT(allocated_bytes() - before, std::uint64_t{4} << 20);
}

}  // namespace
}  // namespace rtev::test
