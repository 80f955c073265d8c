// SPDX-License-Identifier: MIT
#include "formats/fxt/embedded.hpp"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <string_view>

namespace rtev {
namespace {

/// Recordings are repetitive: more effort gains little.
constexpr int level = 1;

std::string deflated(std::string_view bytes) {
  uLongf size = ::compressBound(static_cast<uLong>(bytes.size()));
  std::string compressed(size, '\0');
  const int status = ::compress2(reinterpret_cast<Bytef*>(compressed.data()), &size,
                                 reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()), level);
  if (status != Z_OK) throw std::bad_alloc();  // there is no other reason for it
  compressed.resize(size);
  return compressed;
}

}  // namespace

std::optional<std::string> EmbeddedRecording::chunk(bool all) {
  if (all) recorder_.flush();
  const std::string_view left = std::string_view(waiting_.bytes_).substr(taken_);
  if (left.empty() || (!all && left.size() < chunk_bytes)) {
    waiting_.bytes_.erase(0, taken_);
    taken_ = 0;
    return std::nullopt;
  }
  const std::string_view piece = left.substr(0, chunk_bytes);
  taken_ += piece.size();
  return deflated(piece);
}

Result<std::vector<std::byte>> inflate_chunk(std::span<const std::byte> chunk) {
  std::vector<std::byte> bytes(EmbeddedRecording::chunk_bytes);
  uLongf size = bytes.size();
  const int status = ::uncompress(reinterpret_cast<Bytef*>(bytes.data()), &size,
                                  reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uLong>(chunk.size()));
  if (status == Z_MEM_ERROR) throw std::bad_alloc();
  if (status != Z_OK)
    return std::unexpected(Error{.what = "cannot read embedded recording",
                                 .why = status == Z_BUF_ERROR ? "a chunk is too large, or cut" : "a chunk is damaged"});
  bytes.resize(size);
  return bytes;
}

}  // namespace rtev
