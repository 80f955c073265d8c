// SPDX-License-Identifier: MIT
// A buffer for a file that is written with O_DIRECT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <vector>

namespace rtev {

/// Bytes for one offset of a file. Each byte has the same offset in its page of memory as in its page of the file, as
/// O_DIRECT requires. The memory is allocated once.
class AlignedBuffer {
 public:
  /// The strictest alignment that O_DIRECT requires of offsets, addresses and sizes on Linux.
  static constexpr std::size_t page_bytes = 4096;

  explicit AlignedBuffer(std::size_t capacity)
      : capacity_(capacity),
        memory_(static_cast<char*>(
            std::aligned_alloc(page_bytes, (capacity + 2 * page_bytes - 1) / page_bytes * page_bytes))) {
    if (memory_ == nullptr) throw std::bad_alloc();
  }

  /// Empties the buffer. The next byte is for this offset of the file.
  void begin_at(std::uint64_t file_offset) {
    begin_ = file_offset % page_bytes;
    size_ = 0;
    ends_.clear();
  }
  /// Appends one piece.
  void append(std::string_view bytes) {
    std::memcpy(memory_.get() + begin_ + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
    ends_.push_back(size_);
  }
  /// Where each piece ends.
  std::span<const std::size_t> ends() const { return ends_; }
  std::string_view bytes() const { return {memory_.get() + begin_, size_}; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };

  std::size_t capacity_, begin_ = 0, size_ = 0;
  std::unique_ptr<char, Free> memory_;
  std::vector<std::size_t> ends_;
};

}  // namespace rtev
