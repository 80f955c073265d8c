// SPDX-License-Identifier: MIT
// What a long recording says meanwhile.
#pragma once

#include <cstdint>
#include <functional>

#include "stream/sink.hpp"

namespace rtev::cli {

/// Passes the stream on and updates one line on the terminal: elapsed time, events, events per second, size of the
/// file, losses.
class Progress final : public ForwardingSink {
 public:
  /// `fd` is a terminal; `size` returns the number of bytes written so far.
  Progress(Sink& sink, int fd, std::function<std::uint64_t()> size)
      : ForwardingSink(sink), fd_(fd), size_(std::move(size)) {}

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void flush() override;
  /// Clears the line.
  void summary(const RunSummary& summary, const Registry& registry) override;

 private:
  void show(std::uint64_t now);

  int fd_;
  std::function<std::uint64_t()> size_;
  std::uint64_t start_ns_ = 0, shown_ns_ = 0;
  std::uint64_t events_ = 0, shown_events_ = 0;
  std::uint64_t lost_words_ = 0;
  std::uint64_t dropped_records_ = 0;
};

}  // namespace rtev::cli
