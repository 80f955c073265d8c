// SPDX-License-Identifier: MIT
#include <algorithm>
#include <utility>

#include "rtev/fxt_destination.hpp"

namespace rtev {

Result<std::span<std::uint64_t>> FxtMemory::buffer(std::size_t least_words) {
  constexpr std::size_t least_growth = 1024;
  const std::size_t room = words_.size() - used_;
  if (room < least_words) words_.resize(words_.size() + std::max({least_words - room, words_.size(), least_growth}));
  return std::span(words_).subspan(used_);
}

Result<void> FxtMemory::accept(std::span<const std::uint64_t> records) {
  used_ += records.size();
  return {};
}

FxtBuffered::FxtBuffered(std::size_t buffer_words) : buffer_(buffer_words) {}

Result<std::span<std::uint64_t>> FxtBuffered::buffer(std::size_t least_words) {
  if (buffer_.size() < least_words) buffer_.resize(least_words);
  return std::span(buffer_);
}

Result<void> FxtBuffered::accept(std::span<const std::uint64_t> records) {
  return write(std::as_bytes(records));
}

FxtCallback::FxtCallback(Function function, std::size_t buffer_words)
    : FxtBuffered(buffer_words), function_(std::move(function)) {}

Result<void> FxtCallback::write(std::span<const std::byte> records) {
  return function_(records);
}

}  // namespace rtev
