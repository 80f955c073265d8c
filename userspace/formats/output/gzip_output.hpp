// SPDX-License-Identifier: MIT
// Compresses what is written to another Output.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stream/sink.hpp"

namespace rtev {

/// A gzip file, compressed fast rather than small: it is written while the traced programs run. Not thread-safe.
class GzipOutput final : public Output {
 public:
  explicit GzipOutput(Output& output);
  GzipOutput(const GzipOutput&) = delete;
  GzipOutput& operator=(const GzipOutput&) = delete;
  ~GzipOutput() override;

  bool write(std::string_view bytes) override;
  /// Writes what was held back to compress it better, so that a file that is cut here can be read to this point.
  bool sync() override;
  /// Writes the end of the file.
  bool finish() override;
  const std::optional<Error>& error() const override { return error_ ? error_ : output_.error(); }

 private:
  bool deflate_all(std::string_view bytes, int flush);

  Output& output_;
  z_stream stream_{};
  bool is_open_ = false;
  bool holds_ = false;  ///< something was written that is not compressed yet
  std::optional<Error> error_;
  std::vector<char> piece_;
};

/// A text as a whole gzip file.
std::string gzip_compressed(std::string_view text);

}  // namespace rtev
