// SPDX-License-Identifier: MIT
// Where sinks write to: a file descriptor or memory.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"
#include "formats/output/free_space.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// Drops the pages of a file from the page cache once they are on the disk. The file must be written from its
/// beginning. The kernel then reuses a few pages, which also costs far less than new ones. Short files stay in the
/// cache. A file system may ignore the advice.
class PageCacheTrimmer {
 public:
  explicit PageCacheTrimmer(int fd) : fd_(fd) {}

  /// The file has this many bytes now.
  void advance_to(std::uint64_t end);

 private:
  int fd_;
  std::uint64_t started_ = 0;  ///< write-back was started for the bytes before this one
};

/// Writes to a descriptor, blocking or not. After a failure it writes nothing more, and it truncates a regular file to
/// its last whole piece: sinks write pieces that leave a file valid. If the reader of a pipe has left, the error is
/// EPIPE, provided that SIGPIPE is ignored. Not thread-safe.
class FdOutput final : public Output {
 public:
  /// Borrows the descriptor, e.g. stdout. `name` is for messages.
  FdOutput(int fd, std::string name);
  /// Owns it.
  FdOutput(UniqueFd fd, std::string name) : FdOutput(fd.get(), std::move(name)) { owned_ = std::move(fd); }

  FdOutput(const FdOutput&) = delete;
  FdOutput& operator=(const FdOutput&) = delete;
  ~FdOutput() override;

  /// Keeps the file unchanged, and discards what is written, until begin(): a run that fails to start must not destroy
  /// an existing file. `discard` is called on destruction if begin() never was; it removes a file that was created for
  /// the run.
  void wait_for_begin(std::function<void()> discard = {});
  /// Truncates a regular file to 0 bytes.
  void begin();
  /// For a regular file that is written from its beginning: bytes aligned as in an AlignedBuffer bypass the page cache,
  /// which costs a third; for the others see PageCacheTrimmer. If the file system cannot, or the disk is slow, all
  /// bytes use the cache.
  void spare_page_cache();

  /// For a regular file: watches whether its file system gets nearly full.
  void keep_free(const FreeSpaceFloor& floor);
  /// True once less is free than keep_free() asked for. Any thread may call it.
  bool is_disk_low() const { return free_space_ && free_space_->is_low(); }

  bool write(std::string_view bytes) override;
  bool write_pieces(std::string_view bytes, std::span<const std::size_t> ends) override;
  /// After spare_page_cache(): waits until the whole file is on the disk.
  bool finish() override;
  const std::optional<Error>& error() const override { return error_; }
  /// Bytes written so far. Any thread may call it.
  std::uint64_t written() const { return written_; }
  /// How long readers of a pipe or terminal took nothing. Any thread may call it.
  std::uint64_t blocked_ns() const { return blocked_ns_; }
  int fd() const { return fd_; }
  const std::string& name() const { return name_; }
  bool is_regular_file() const { return is_regular_file_; }
  bool is_terminal() const;

 private:
  /// One call of write(2): how many bytes, and whether past the page cache.
  struct Stretch {
    std::size_t bytes;
    bool direct;
  };

  Stretch next_stretch(std::string_view bytes, std::uint64_t file_offset) const;
  bool set_direct(bool direct);
  void note_blocked(std::uint64_t ns);
  ssize_t write_some(std::string_view bytes, std::uint64_t file_offset);

  bool has_begun_ = true;
  std::function<void()> discard_;
  std::atomic<std::uint64_t> written_ = 0, blocked_ns_ = 0;
  std::optional<PageCacheTrimmer> trimmer_;
  std::optional<FreeSpaceWatch> free_space_;
  bool may_be_direct_ = false, is_direct_ = false;
  UniqueFd owned_;
  int fd_;
  bool is_regular_file_ = false;
  std::string name_;
  std::optional<Error> error_;
};

/// Keeps everything in memory, for tests and small texts.
class StringOutput final : public Output {
 public:
  bool write(std::string_view bytes) override {
    text_ += bytes;
    return true;
  }
  const std::optional<Error>& error() const override { return error_; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::optional<Error> error_;
};

}  // namespace rtev
