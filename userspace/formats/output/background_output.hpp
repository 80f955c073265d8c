// SPDX-License-Identifier: MIT
// Writes on a thread of its own: a disk that takes its time does not hold up who reads rings that fill up meanwhile.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "formats/output/aligned_buffer.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// Takes pieces as fast as they come, as long as no more than `max_bytes` wait; then it is as slow as the Output
/// behind it, which gets the same bytes in the same order, whole pieces at a time. To be used by one thread; the other
/// Output is its own until the end. The thread starts with the first piece: what is forked before is forked without it.
class BackgroundOutput final : public Output {
 public:
  struct Options {
    /// What the fastest streams write in a fifth of a second.
    std::size_t max_bytes = std::size_t{32} << 20;
    /// Pieces are handed on together, up to this many bytes or until the next sync(). 0: as they come.
    std::size_t together_bytes = 0;
  };
  /// Of files: few large writes cost less than many.
  static constexpr std::size_t file_together_bytes = std::size_t{1} << 20;

  explicit BackgroundOutput(Output& output) : BackgroundOutput(output, Options{}) {}
  BackgroundOutput(Output& output, const Options& options) : output_(output), options_(options) {}
  BackgroundOutput(const BackgroundOutput&) = delete;
  BackgroundOutput& operator=(const BackgroundOutput&) = delete;
  /// Writes what waits.
  ~BackgroundOutput() override;

  /// False if an earlier piece could not be written.
  bool write(std::string_view bytes) override;
  /// Hands the wish on; does not wait.
  bool sync() override;
  /// Waits until all is written.
  bool finish() override;
  const std::optional<Error>& error() const override { return failed_ ? output_.error() : none_; }

 private:
  enum class Wish : std::uint8_t { write, sync, finish };
  struct Order {
    Wish wish;
    std::optional<AlignedBuffer> block{};
  };

  void wait_for_room(std::unique_lock<std::mutex>& lock, std::size_t bytes);
  void hand_on();
  void enqueue(Order order);
  AlignedBuffer take_block(std::size_t least_bytes);
  void keep_spare(AlignedBuffer block);
  void run();
  bool carry_out(const Order& order);

  Output& output_;
  const Options options_;
  const std::optional<Error> none_;
  std::atomic<bool> failed_ = false;      ///< behind it, output_.error() is final
  std::uint64_t taken_bytes_ = 0;         ///< in all: the offset in the file of what comes next
  std::optional<AlignedBuffer> filling_;  ///< not handed on yet

  std::mutex mutex_;
  std::condition_variable work_, progress_;
  std::deque<Order> queue_;
  std::vector<AlignedBuffer> spares_;  ///< to be filled again: fresh memory is slow
  std::size_t waiting_bytes_ = 0, spare_bytes_ = 0;
  bool idle_ = true, ends_ = false;
  std::thread thread_;
};

}  // namespace rtev
