// SPDX-License-Identifier: MIT
// Base of the formats that are text lines: collects lines and writes them in large pieces.
#pragma once

#include "base/text_buffer.hpp"
#include "stream/sink.hpp"

namespace rtev {

class LineSink : public Sink {
 public:
  void flush() override { hand_out(); }

 protected:
  explicit LineSink(Output& output) : output_(output) {}

  void end_line() {
    out_.add('\n');
    hand_out_if_full();
  }
  void hand_out_if_full() {
    if (out_.size() >= piece) hand_out();
  }
  void hand_out() {
    if (out_.size() == 0) return;
    output_.write(out_.text());  // an error stays in Output::error(), which the session checks
    out_.clear();
  }
  /// The output has failed: there is no use in formatting more.
  bool closed() const { return output_.error().has_value(); }

  TextBuffer out_;

 private:
  static constexpr std::size_t piece = std::size_t{64} << 10;
  Output& output_;
};

}  // namespace rtev
