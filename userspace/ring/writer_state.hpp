// SPDX-License-Identifier: MIT
// The state that a RingWriter shares with its DomainWriters.
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

/// Creates, pauses and removes the ring file, also across forks. Thread-safe except for the domains' producers.
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

  /// Whether events are written now. A forked child creates its ring here, with its first event.
  bool is_open(std::uint32_t domain) {
    const Gate gate = gate_.load(std::memory_order_acquire);
    return gate == Gate::open || (gate == Gate::forked && start_in_child(domain));
  }
  bool is_registered(std::uint16_t id) const { return id < registered_.load(std::memory_order_relaxed); }
  std::uint64_t now() const { return clock_(); }
  RingProducer& producer(std::uint32_t domain) { return producers_[domain].ring; }
  std::uint32_t domains() const { return static_cast<std::uint32_t>(producers_.size()); }

 private:
  // A cache line for each: different threads write to them.
  struct alignas(64) Producer {
    RingProducer ring;
  };
  enum class Stage { fresh, running, forked, stopped };
  /// What a domain does with an event, derived from the stage and pause().
  enum class Gate { closed, open, forked };

  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();
  bool start_in_child(std::uint32_t domain);
  Result<void> make_file();
  void write_lifecycle(std::uint32_t domain, Lifecycle what, std::int64_t value);
  void set(Stage stage);

  const RingWriter::Options options_;
  const std::filesystem::path directory_;
  std::uint64_t (*const clock_)();

  std::atomic<Gate> gate_ = Gate::closed;
  std::atomic<std::uint32_t> registered_ = 0;

  mutable std::mutex mutex_;
  Stage stage_ = Stage::fresh;
  bool paused_ = false;
  pid_t owner_ = 0;  ///< the process that created the file
  RingFile file_;
  std::vector<Producer> producers_;
  struct Registered {
    std::string name;
    UserType type;
  };
  std::vector<Registered> events_;  ///< by id
};

}  // namespace rtev
