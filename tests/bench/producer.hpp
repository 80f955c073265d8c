// SPDX-License-Identifier: MIT
// Rings to read: filled and left at rest, or written to by a thread of ours as fast as it can or at a rate.
#pragma once

#include <sched.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "rtev/ring_writer.hpp"
#include "support/temp_dir.hpp"

namespace rtev::bench {

/// What the events are.
enum class Mix : std::uint8_t {
  runtime,  ///< as minor collections write them: nested spans and counters, 99 words in 45 events
  user,     ///< spans, ints, and now and then a unit or 24 bytes of a type of the program's own
};
std::string_view name_of(Mix mix);

/// CLOCK_MONOTONIC, asked for at every 64th call of a thread only: a producer that may be faster than the clock.
std::uint64_t cheap_clock();

/// Binds the calling thread to a cpu, for as long as the object lives.
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

/// Writes one mix into one domain, event after event.
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

/// A ring file of this process in a folder of its own; gone with the object.
class Ring {
 public:
  explicit Ring(unsigned log2_words, std::uint32_t domains = 1, std::uint64_t (*clock)() = cheap_clock);

  RingWriter& writer() { return *writer_; }
  const std::filesystem::path& directory() const { return directory_.path(); }
  std::filesystem::path path() const { return writer_->path(); }
  /// Fills the ring of every domain to the brim, nothing overwritten; domains take turns after each event.
  /// Returns the events in the file.
  std::uint64_t fill(Mix mix);

 private:
  test::TempDir directory_;
  std::optional<RingWriter> writer_;
  unsigned log2_words_;
};

/// What a producer did.
struct Produced {
  std::uint64_t events = 0;
  std::uint64_t words = 0;
  std::uint64_t ns = 0;
  double events_per_second() const { return ns == 0 ? 0 : static_cast<double>(events) * 1e9 / static_cast<double>(ns); }
};

/// Writes `count` events as fast as it can, on the calling thread.
Produced produce(Ring& ring, Mix mix, std::uint64_t count);

/// Writes for so long, on the calling thread: at a rate, or flat out where the rate is 0. The pace is kept in steps of
/// microseconds. What was missed while the thread was off its cpu for long is not made up for: no bursts.
Produced produce_for(Ring& ring, Mix mix, double events_per_second, double seconds);

}  // namespace rtev::bench
