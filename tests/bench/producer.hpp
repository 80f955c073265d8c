// SPDX-License-Identifier: MIT
// Rings for benchmarks: filled in advance, or written by a thread at full speed or at a rate.
#pragma once

#include <sched.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "rtev/ring_writer.hpp"
#include "support/temp_dir.hpp"

namespace rtev::bench {

/// Kinds of events.
enum class Mix : std::uint8_t {
  runtime,  ///< events of minor collections: nested spans and counters, 99 words in 45 events
  user,     ///< spans, ints, and occasionally a unit or 24 bytes of a custom type
};
std::string_view name_of(Mix mix);

/// CLOCK_MONOTONIC, read at every 64th call of a thread only, since reading it takes longer than writing an event.
std::uint64_t cheap_clock();

/// Binds the calling thread to a cpu while the object exists.
class CpuBinding {
 public:
  explicit CpuBinding(int cpu);
  CpuBinding(const CpuBinding&) = delete;
  CpuBinding& operator=(const CpuBinding&) = delete;
  ~CpuBinding();

 private:
  cpu_set_t before_;
};

/// CPU time of the calling thread.
std::uint64_t thread_cpu_ns();

/// Writes events of one mix to one domain.
class Composer {
 public:
  Composer(RingWriter& writer, std::uint32_t domain, Mix mix);
  /// Writes the next event.
  void step();
  std::uint64_t events() const { return events_; }

 private:
  void runtime_step();
  void user_step();

  DomainWriter domain_;
  Mix mix_;
  UserEvent span_{}, number_{}, unit_{}, payload_{};
  std::uint64_t events_ = 0;
  unsigned at_ = 0;
};

/// A ring file of this process in its own folder; removed with the object.
class Ring {
 public:
  explicit Ring(unsigned log2_words, std::uint32_t domains = 1, std::uint64_t (*clock)() = cheap_clock);

  RingWriter& writer() { return *writer_; }
  const std::filesystem::path& directory() const { return directory_.path(); }
  std::filesystem::path path() const { return writer_->path(); }
  /// Fills the ring of every domain without overwriting; domains alternate after each event. Returns the number of
  /// events in the file.
  std::uint64_t fill(Mix mix);

 private:
  test::TempDir directory_;
  std::optional<RingWriter> writer_;
  unsigned log2_words_;
};

/// What a producer wrote.
struct Produced {
  std::uint64_t events = 0;
  std::uint64_t words = 0;
  std::uint64_t ns = 0;
  double events_per_second() const { return ns == 0 ? 0 : static_cast<double>(events) * 1e9 / static_cast<double>(ns); }
};

/// Writes for this long, on the calling thread, at a rate; at full speed if the rate is 0. The pace is kept in steps of
/// microseconds. Time lost while the thread was off its cpu for long is not caught up in a burst.
Produced produce_for(Ring& ring, Mix mix, double events_per_second, double seconds);

}  // namespace rtev::bench
