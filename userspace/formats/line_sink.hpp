// SPDX-License-Identifier: MIT
// What the formats made of text lines share: lines are collected and handed out in large pieces.
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
    if (out_.size() >= piece) hand_out();
  }
  void hand_out() {
    if (out_.size() == 0) return;
    output_.write(out_.text());  // a failure stays in Output::error(), where the session looks for it
    out_.clear();
  }
  /// No use in formatting what nobody takes any more.
  bool closed() const { return output_.error().has_value(); }

  TextBuffer out_;

 private:
  static constexpr std::size_t piece = std::size_t{64} << 10;
  Output& output_;
};

}  // namespace rtev
