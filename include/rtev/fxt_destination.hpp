// SPDX-License-Identifier: MIT
// Where FxtWriter's records go: a file, a descriptor, memory, a function of the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rtev/error.hpp"

namespace rtev {

/// Hands out buffers and takes them back filled with whole records: none is cut between two of them. Used by one writer
/// at a time, which stops at the first error. Implement it to place records without a copy; else FxtCallback is easier.
class FxtDestination {
 public:
  virtual ~FxtDestination() = default;

  /// A buffer of `least_words` words or more (never more than fxt::max_record_words are asked for). It is the writer's
  /// until accept(), or until the next call if nothing fitted.
  virtual Result<std::span<std::uint64_t>> buffer(std::size_t least_words) = 0;
  /// Takes back the buffer handed out last; `records` is the front of it, whole records only.
  virtual Result<void> accept(std::span<const std::uint64_t> records) = 0;
  /// All that was accepted is to be where others see it.
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
  Result<std::span<std::uint64_t>> buffer(std::size_t least_words) override;
  Result<void> accept(std::span<const std::uint64_t> records) override;

  /// What was accepted; call FxtWriter::flush() first. Valid until the writer goes on.
  std::span<const std::uint64_t> words() const { return std::span(words_).first(used_); }
  std::span<const std::byte> bytes() const { return std::as_bytes(words()); }
  /// Forgets what was accepted and keeps the memory. Only between a flush and the next record.
  void clear() { used_ = 0; }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t used_ = 0;
};

/// Collects records in a buffer of its own and hands them on as bytes when it is full or flushed. The buffer grows if a
/// single record is larger.
class FxtBuffered : public FxtDestination {
 public:
  static constexpr std::size_t default_buffer_words = 8192;

  Result<std::span<std::uint64_t>> buffer(std::size_t least_words) final;
  Result<void> accept(std::span<const std::uint64_t> records) final;

 protected:
  explicit FxtBuffered(std::size_t buffer_words);
  /// Whole records, never empty.
  virtual Result<void> write(std::span<const std::byte> records) = 0;

 private:
  std::vector<std::uint64_t> buffer_;
};

/// Calls a function with whole records, which copies or writes them before it returns:
///   FxtCallback destination([&](std::span<const std::byte> records) -> Result<void> { … });
class FxtCallback final : public FxtBuffered {
 public:
  using Function = std::function<Result<void>(std::span<const std::byte> records)>;
  explicit FxtCallback(Function function, std::size_t buffer_words = default_buffer_words);

 protected:
  Result<void> write(std::span<const std::byte> records) override;

 private:
  Function function_;
};

/// Writes to a descriptor, blocking or not, until all is written or it fails. A reader that went away is the error
/// EPIPE, provided that SIGPIPE is ignored. Where a disk fills up in the middle of a record, a regular file is cut back
/// to the last whole one.
class FxtFd : public FxtBuffered {
 public:
  /// Borrows the descriptor. `name` is for messages.
  FxtFd(int fd, std::string name, std::size_t buffer_words = default_buffer_words);

 protected:
  Result<void> write(std::span<const std::byte> records) override;

  int fd_;
  std::string name_;
};

/// A file of its own.
class FxtFile final : public FxtFd {
 public:
  /// Creates the file, with these permissions less the umask, or empties the one that is there.
  static Result<FxtFile> create(const std::string& path, unsigned mode = 0600);

  FxtFile(FxtFile&& other) noexcept;
  FxtFile& operator=(FxtFile&& other) noexcept;
  /// Closes; what the writer did not flush is not in the file.
  ~FxtFile() override;
  /// Closes after the last flush and tells what only that brings to light on network file systems.
  Result<void> close();

 private:
  FxtFile(int fd, std::string path) : FxtFd(fd, std::move(path)) {}
};

}  // namespace rtev
