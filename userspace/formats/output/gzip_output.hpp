// SPDX-License-Identifier: MIT
// Compresses on the way to another Output.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "stream/sink.hpp"

namespace rtev {

/// A gzip file. Fast rather than small: it is written while the traced programs run. Not thread-safe.
class GzipOutput final : public Output {
 public:
  explicit GzipOutput(Output& output);
  GzipOutput(const GzipOutput&) = delete;
  GzipOutput& operator=(const GzipOutput&) = delete;
  ~GzipOutput() override;

  bool write(std::string_view bytes) override;
  /// Hands on what was held to compress it better, so that the file is good up to here if it is cut.
  bool sync() override;
  /// Writes the end of the file.
  bool finish() override;
  const std::optional<Error>& error() const override { return error_ ? error_ : output_.error(); }

 private:
  bool deflate_all(std::string_view bytes, int flush);

  Output& output_;
  z_stream stream_{};
  bool is_open_ = false;
  bool holds_ = false;  ///< something that was written and not handed on
  std::optional<Error> error_;
  std::vector<char> piece_;
};

}  // namespace rtev
