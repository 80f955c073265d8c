// SPDX-License-Identifier: MIT
// Writes in a thread of its own, so that a slow disk does not delay the thread that reads rings.
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

/// Queues up to `max_bytes`; beyond that write() blocks until the Output behind it has written enough. That Output gets
/// the same bytes in the same order, whole pieces at a time, and belongs to this object until the end. write(), sync()
/// and finish() must be called by one thread. The writing thread starts with the first piece, so that a process forked
/// before has no second thread.
class BackgroundOutput final : public Output {
 public:
  struct Options {
    /// As much as the fastest streams write in 200 ms.
    std::size_t max_bytes = std::size_t{32} << 20;
    /// Pieces are joined up to this many bytes, or until the next sync(). 0: never.
    std::size_t together_bytes = 0;
  };
  /// For files: few large writes cost less than many small ones.
  static constexpr std::size_t file_together_bytes = std::size_t{1} << 20;

  explicit BackgroundOutput(Output& output) : BackgroundOutput(output, Options{}) {}
  BackgroundOutput(Output& output, const Options& options) : output_(output), options_(options) {}
  BackgroundOutput(const BackgroundOutput&) = delete;
  BackgroundOutput& operator=(const BackgroundOutput&) = delete;
  /// Writes what is queued.
  ~BackgroundOutput() override;

  /// False if an earlier piece could not be written.
  bool write(std::string_view bytes) override;
  /// Queues the request; does not wait.
  bool sync() override;
  /// Waits until all is written.
  bool finish() override;
  /// Queues what finish() does, and does not wait.
  void begin_finish();
  /// Waits until all that is queued is written. False after an error.
  bool wait();
  /// Bytes that write() was given and has not refused.
  std::uint64_t taken() const { return taken_bytes_; }
  const std::optional<Error>& error() const override { return failed_ ? output_.error() : none_; }

 private:
  enum class Action : std::uint8_t { write, sync, finish };
  struct Request {
    Action action;
    std::optional<AlignedBuffer> block{};
  };

  void wait_for_room(std::unique_lock<std::mutex>& lock, std::size_t bytes);
  void enqueue_filling();
  void enqueue(Request request);
  AlignedBuffer take_block(std::size_t min_bytes);
  void keep_spare(AlignedBuffer block);
  void run();
  bool carry_out(const Request& request);

  Output& output_;
  const Options options_;
  const std::optional<Error> none_;
  std::atomic<bool> failed_ = false;      ///< once set, output_.error() does not change
  std::uint64_t taken_bytes_ = 0;         ///< in all: the file offset of the next piece
  std::optional<AlignedBuffer> filling_;  ///< not queued yet

  std::mutex mutex_;
  std::condition_variable work_, progress_;
  std::deque<Request> queue_;
  std::vector<AlignedBuffer> spares_;  ///< for reuse: fresh memory is slow
  std::size_t waiting_bytes_ = 0, spare_bytes_ = 0;
  bool idle_ = true, ends_ = false;
  std::thread thread_;
};

}  // namespace rtev
