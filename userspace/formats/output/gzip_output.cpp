// SPDX-License-Identifier: MIT
#include "formats/output/gzip_output.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "formats/output/output.hpp"

namespace rtev {
namespace {

constexpr std::size_t piece_bytes = std::size_t{256} << 10;

/// Adds the header of a gzip file to the largest window.
constexpr int gzip_window = MAX_WBITS + 16;

constexpr int default_memory = 8;

}  // namespace

GzipOutput::GzipOutput(Output& output) : output_(output), piece_(piece_bytes) {
  is_open_ =
      ::deflateInit2(&stream_, Z_BEST_SPEED, Z_DEFLATED, gzip_window, default_memory, Z_DEFAULT_STRATEGY) == Z_OK;
  if (!is_open_) error_ = Error{.what = "cannot compress", .why = "out of memory"};
}

GzipOutput::~GzipOutput() {
  if (is_open_) ::deflateEnd(&stream_);
}

bool GzipOutput::write(std::string_view bytes) {
  holds_ = true;
  return deflate_all(bytes, Z_NO_FLUSH);
}

bool GzipOutput::sync() {
  return std::exchange(holds_, false) ? deflate_all({}, Z_SYNC_FLUSH) : !error();
}

bool GzipOutput::finish() {
  const bool good = deflate_all({}, Z_FINISH);
  holds_ = false;
  if (std::exchange(is_open_, false)) ::deflateEnd(&stream_);
  return output_.finish() && good;
}

bool GzipOutput::deflate_all(std::string_view bytes, int flush) {
  if (!is_open_ || error()) return false;
  do {
    const auto in = static_cast<uInt>(std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max()));
    // zlib does not write to its input, although the type is not const.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = in;
    bytes.remove_prefix(in);
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
      stream_.avail_out = static_cast<uInt>(piece_.size());
      ::deflate(&stream_, bytes.empty() ? flush : Z_NO_FLUSH);
      const std::size_t out = piece_.size() - stream_.avail_out;
      if (out > 0 && !output_.write({piece_.data(), out})) return false;
    } while (stream_.avail_out == 0);
  } while (!bytes.empty());
  return true;
}

std::string gzip_compressed(std::string_view text) {
  StringOutput output;
  GzipOutput gzip(output);
  gzip.write(text);
  gzip.finish();
  return output.text();
}

}  // namespace rtev
