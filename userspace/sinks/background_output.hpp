// SPDX-License-Identifier: MIT
// Writes on a thread of its own: a disk that takes its time does not hold up who reads rings that fill up meanwhile.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "sinks/sink.hpp"

namespace rtev {

/// Takes pieces as fast as they come, as long as no more than `most_bytes` wait; then it is as slow as the Output
/// behind it, which gets the same pieces in the same order. To be used by one thread; the other Output is its own until
/// the end. The thread starts with the first piece: what is forked before is forked without it.
class BackgroundOutput final : public Output {
 public:
  /// What the fastest streams write in a fifth of a second.
  static constexpr std::size_t default_most_bytes = std::size_t{32} << 20;

  explicit BackgroundOutput(Output& output, std::size_t most_bytes = default_most_bytes);
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
  struct Piece {
    Wish wish;
    std::vector<char> bytes;
  };

  void enqueue(Piece piece);
  std::vector<char> take_spare();
  void keep_spare(std::vector<char> buffer);
  void run();
  bool carry_out(const Piece& piece);

  Output& output_;
  const std::size_t most_bytes_;
  const std::optional<Error> none_;
  std::atomic<bool> failed_ = false;  ///< behind it, output_.error() is final

  std::mutex mutex_;
  std::condition_variable work_, progress_;
  std::deque<Piece> queue_;
  std::vector<std::vector<char>> spares_;  ///< buffers to be filled again: fresh memory is slow
  std::size_t waiting_bytes_ = 0, spare_bytes_ = 0;
  bool idle_ = true, ends_ = false;
  std::thread thread_;
};

}  // namespace rtev
