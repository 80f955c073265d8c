// SPDX-License-Identifier: MIT
// Destinations of FxtWriter's records: a file, memory, or a function of the caller. Not thread-safe: a destination
// belongs to one writer at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rtev/error.hpp"

namespace rtev {

/// Provides buffers and takes them back filled with whole records. After an error the writer makes no further calls.
/// Implement it to place records without a copy; otherwise FxtCallback is simpler.
class FxtDestination {
 public:
  virtual ~FxtDestination() = default;

  /// A buffer of at least `min_words` words (at most fxt::max_record_words are requested). The writer owns it until
  /// accept() or the next buffer().
  virtual Result<std::span<std::uint64_t>> buffer(std::size_t min_words) = 0;
  /// Takes back the last buffer. `records` is the front of it and holds whole records.
  virtual Result<void> accept(std::span<const std::uint64_t> records) = 0;
  /// Makes all accepted records visible to others.
  virtual Result<void> flush() { return {}; }

 protected:
  FxtDestination() = default;
  FxtDestination(const FxtDestination&) = default;
  FxtDestination(FxtDestination&&) = default;
  FxtDestination& operator=(const FxtDestination&) = default;
  FxtDestination& operator=(FxtDestination&&) = default;
};

/// Keeps all records in one piece of memory, without bound.
class FxtMemory final : public FxtDestination {
 public:
  Result<std::span<std::uint64_t>> buffer(std::size_t min_words) override;
  Result<void> accept(std::span<const std::uint64_t> records) override;

  /// The accepted records; call FxtWriter::flush() first. Valid until the writer continues.
  std::span<const std::uint64_t> words() const { return std::span(words_).first(used_); }
  std::span<const std::byte> bytes() const { return std::as_bytes(words()); }
  /// Drops the accepted records and keeps the memory. Only between a flush and the next record.
  void clear() { used_ = 0; }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t used_ = 0;
};

/// Collects records in a buffer and passes them to write() as bytes when it is full or flushed. The buffer grows if one
/// record is larger.
class FxtBuffered : public FxtDestination {
 public:
  static constexpr std::size_t default_buffer_words = 8192;

  Result<std::span<std::uint64_t>> buffer(std::size_t min_words) final;
  Result<void> accept(std::span<const std::uint64_t> records) final;

 protected:
  explicit FxtBuffered(std::size_t buffer_words) : buffer_(buffer_words) {}
  /// Gets whole records, at least one.
  virtual Result<void> write(std::span<const std::byte> records) = 0;

 private:
  std::vector<std::uint64_t> buffer_;
};

/// Passes records to a function.
class FxtCallback final : public FxtBuffered {
 public:
  using Function = std::function<Result<void>(std::span<const std::byte> records)>;
  explicit FxtCallback(Function function, std::size_t buffer_words = default_buffer_words)
      : FxtBuffered(buffer_words), function_(std::move(function)) {}

 private:
  Result<void> write(std::span<const std::byte> records) override { return function_(records); }

  Function function_;
};

/// Writes to a file, pipe or socket, blocking or not, and waits until everything is written. If a disk is full in the
/// middle of a record, a regular file is truncated after the last whole record. A pipe without a reader is the error
/// EPIPE, provided that the program ignores SIGPIPE.
class FxtFile final : public FxtBuffered {
 public:
  /// Creates the file, with these permissions less the umask, or empties an existing one.
  static Result<FxtFile> create(const std::string& path, unsigned mode = 0600);
  /// Takes over an open descriptor. `name` is for messages.
  static FxtFile adopt(int fd, std::string name, std::size_t buffer_words = default_buffer_words) {
    return {fd, std::move(name), buffer_words};
  }

  FxtFile(FxtFile&& other) noexcept
      : FxtBuffered(static_cast<FxtBuffered&&>(other)),
        fd_(std::exchange(other.fd_, -1)),
        name_(std::move(other.name_)) {}
  FxtFile& operator=(FxtFile&& other) noexcept;
  /// Closes the file. Records that FxtWriter has not flushed are missing.
  ~FxtFile() override;
  /// Closes the file after the last flush; reports write errors that network file systems find only now.
  Result<void> close();

 private:
  FxtFile(int fd, std::string name, std::size_t buffer_words)
      : FxtBuffered(buffer_words), fd_(fd), name_(std::move(name)) {}
  Result<void> write(std::span<const std::byte> records) override;

  int fd_;
  std::string name_;
};

}  // namespace rtev
