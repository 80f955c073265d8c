// SPDX-License-Identifier: MIT
// Where sinks write to: a file descriptor, memory, or nowhere.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"
#include "formats/output/page_cache_trimmer.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// Writes to a descriptor, blocking or not, until all is written or it fails. After a failure nothing is written any
/// more, and of a regular file the piece that failed is cut off again: sinks write in pieces that leave a file valid.
/// A reader that went away is the error EPIPE, provided that SIGPIPE is ignored. Not thread-safe.
class FdOutput final : public Output {
 public:
  /// Borrows the descriptor, e.g. stdout. `name` is for messages.
  FdOutput(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  /// Owns it.
  FdOutput(UniqueFd fd, std::string name) : owned_(std::move(fd)), fd_(owned_.get()), name_(std::move(name)) {}

  FdOutput(const FdOutput&) = delete;
  FdOutput& operator=(const FdOutput&) = delete;
  ~FdOutput() override;

  /// Leaves the file as it is, and drops what is written, until begin(): a run that cannot start shall not cost what
  /// was there. A file that was `created` for it goes again if nothing begins.
  void wait_for_begin(bool created);
  /// Empties a regular file.
  void begin();
  /// Of a regular file that is written from its beginning: what lies in memory as in the file (see AlignedBuffer) goes
  /// past the page cache, which costs a third; the rest leaves it soon, see PageCacheTrimmer. Where a file system
  /// cannot, or a disk is slow, it goes through the cache.
  void spare_page_cache();

  bool write(std::string_view bytes) override;
  bool write_pieces(std::string_view bytes, std::span<const std::size_t> ends) override;
  /// Of a file that spares the page cache: waits until all of it is on the disk.
  bool finish() override;
  const std::optional<Error>& error() const override { return error_; }
  /// Bytes written so far. May be asked by other threads.
  std::uint64_t written() const { return written_; }
  int fd() const { return fd_; }
  const std::string& name() const { return name_; }
  bool is_regular_file() const;
  bool is_terminal() const;

 private:
  /// Of what is written next: so many bytes, in this way.
  struct Stretch {
    std::size_t bytes;
    bool direct;
  };

  Stretch next_stretch(std::string_view bytes, std::uint64_t file_offset) const;
  bool set_direct(bool direct);
  ssize_t write_some(std::string_view bytes, std::uint64_t file_offset);
  void cut_back(std::size_t bytes);

  bool has_begun_ = true, created_ = false;
  std::atomic<std::uint64_t> written_ = 0;
  std::optional<PageCacheTrimmer> trail_;
  bool may_be_direct_ = false, is_direct_ = false;
  UniqueFd owned_;
  int fd_;
  std::string name_;
  std::optional<Error> error_;
};

/// Keeps everything, for tests and for small texts.
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
