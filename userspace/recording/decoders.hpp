// SPDX-License-Identifier: MIT
// From the bytes of each format back to the stream.
#pragma once

#include <memory>
#include <string_view>

#include "recording/recording_file.hpp"
#include "recording/replay.hpp"
#include "rtev/error.hpp"
#include "stream/sink.hpp"

namespace rtev {

class Decoder {
 public:
  virtual ~Decoder() = default;
  /// The next bytes, in pieces of any size. After an error only finish() may follow.
  virtual Result<void> feed(std::string_view bytes) = 0;
  /// There are no more: the sink gets its summary.
  virtual Result<Replay::End> finish() = 0;
};

std::unique_ptr<Decoder> make_decoder(RecordingFormat format, Sink& sink);

}  // namespace rtev
