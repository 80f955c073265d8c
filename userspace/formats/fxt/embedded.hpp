// SPDX-License-Identifier: MIT
// A recording that traces of other formats carry along, in chunks that their viewers skip.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/fxt/fxt_sink.hpp"
#include "formats/output/output.hpp"
#include "rtev/error.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// What other formats cannot say of the stream, so that a conversion loses nothing. Give it what the sink gets, and
/// take the chunks from it; one after the other, inflated, they are what Replay reads. Chunks cut records.
class EmbeddedRecording {
 public:
  /// Bytes of a chunk before it is compressed, at the most.
  static constexpr std::size_t chunk_bytes = std::size_t{256} << 10;

  void header(const RunHeader& header) { recorder_.header(header); }
  void consume(const Batch& batch, const Registry& registry) { recorder_.consume(batch, registry); }
  void summary(const RunSummary& summary, const Registry& registry) { recorder_.summary(summary, registry); }

  /// The next chunk, compressed by itself; nothing if there is none yet, or with `all` if there is nothing left. To be
  /// asked until then after each batch, or what is waiting piles up.
  std::optional<std::string> chunk(bool all);

 private:
  class Memory final : public Output {
   public:
    bool write(std::string_view bytes) override {
      bytes_ += bytes;
      return true;
    }
    const std::optional<Error>& error() const override { return error_; }

    std::string bytes_;

   private:
    std::optional<Error> error_;
  };

  Memory waiting_;
  std::size_t taken_ = 0;  ///< of what is waiting
  Recorder recorder_{waiting_, {.most_held_ns = 0, .for_viewers = false}};
};

/// What a chunk was before. An error if it is none, or larger than any chunk is.
Result<std::vector<std::byte>> inflate_chunk(std::span<const std::byte> chunk);

}  // namespace rtev
