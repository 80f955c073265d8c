// SPDX-License-Identifier: MIT
// The folder of dumps: names, files, and how much of the disk they may take.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "formats/output/free_space.hpp"
#include "rtev/error.hpp"

namespace rtev::flight {

/// "rtev-HOST-20260727T101500.123456Z-pause-4242.fxt.gz".
struct DumpName {
  std::string host{};             ///< other characters than letters, digits, '.', '_' and '-' become '_'
  std::uint64_t realtime_ns = 0;  ///< when it was triggered
  std::string trigger{};          ///< lower-case letters and '-'
  std::int32_t pid = 0;           ///< 0: of no process

  std::string text() const;
  /// True for such names, also with partial_suffix.
  static bool is_one(std::string_view name);
};
inline constexpr std::string_view partial_suffix = ".partial";

/// Never touches files other than those it made: regular ones of its user with such names. One thread.
class DumpDirectory {
 public:
  struct Options {
    std::uint64_t max_bytes = std::uint64_t{1} << 30;  ///< of all dumps; the oldest go
    FreeSpaceFloor min_free{.share = 0.05};
  };
  /// `directory` is open, belongs to the user of this process, and nobody else may write it.
  DumpDirectory(UniqueFd directory, std::string path, const Options& options)
      : directory_(std::move(directory)), path_(std::move(path)), options_(options) {}

  /// Removes what killed recorders left: partial files that no process writes. Returns how many.
  std::size_t remove_partial();
  /// An empty file, which has the partial suffix until complete(). Fails also if the disk is nearly full.
  Result<UniqueFd> create(const std::string& name);
  /// Has the file on the disk, under its name. `fd` is that of create().
  Result<void> complete(const std::string& name, int fd);
  void discard(const std::string& name);
  /// Removes the oldest dumps while all take more than allowed, but not this one. Returns how many.
  std::size_t make_room(const std::string& newest);

  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  const FreeSpaceFloor& min_free() const { return options_.min_free; }

 private:
  struct File {
    std::string name{};
    std::uint64_t bytes = 0;
  };
  /// By name; those of one host are in order of time.
  std::vector<File> files() const;

  UniqueFd directory_;
  std::string path_;
  Options options_;
};

}  // namespace rtev::flight
