// SPDX-License-Identifier: MIT
// What a RingWriter and its domains share.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "ring/ring_file.hpp"
#include "rtev/ring_writer.hpp"

namespace rtev {

/// Goes through the life of a ring file; knows what a fork does to it. Thread-safe but for the domains' producers.
class WriterState {
 public:
  WriterState(RingWriter::Options options, std::filesystem::path directory);
  WriterState(const WriterState&) = delete;
  WriterState& operator=(const WriterState&) = delete;
  ~WriterState();

  Result<void> start(std::uint32_t domain);
  void pause(std::uint32_t domain);
  void resume(std::uint32_t domain);
  void stop(std::uint32_t domain);
  Result<UserEvent> register_event(std::string_view name, UserType type);
  std::string path() const;

  /// Whether events are to be written now. A forked child makes its ring here, when it has its first event.
  bool is_open(std::uint32_t domain) {
    const Gate gate = gate_.load(std::memory_order_acquire);
    return gate == Gate::open || (gate == Gate::forked && adopt_fork(domain));
  }
  bool is_registered(std::uint16_t id) const { return id < registered_.load(std::memory_order_relaxed); }
  std::uint64_t now() const { return clock_(); }
  RingProducer& producer(std::uint32_t domain) { return producers_[domain].ring; }
  std::uint32_t domains() const { return static_cast<std::uint32_t>(producers_.size()); }

 private:
  // Neighbours are written to by different threads: a cache line for each.
  struct alignas(64) Producer {
    RingProducer ring;
  };
  enum class Life { fresh, running, forked, stopped };
  /// What a domain that has an event is to do: Life, without those who are paused.
  enum class Gate { closed, open, forked };

  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();
  bool adopt_fork(std::uint32_t domain);
  Result<void> make_file();
  void tell(std::uint32_t domain, Lifecycle what, std::int64_t datum);
  void set(Life life);

  const RingWriter::Options options_;
  const std::filesystem::path directory_;
  std::uint64_t (*const clock_)();

  std::atomic<Gate> gate_ = Gate::closed;
  std::atomic<std::uint32_t> registered_ = 0;

  mutable std::mutex mutex_;
  Life life_ = Life::fresh;
  bool paused_ = false;
  pid_t owner_ = 0;  ///< the process whose file it is
  RingFile file_;
  std::vector<Producer> producers_;
  struct Registered {
    std::string name;
    UserType type;
  };
  std::vector<Registered> events_;  ///< by id
};

}  // namespace rtev
