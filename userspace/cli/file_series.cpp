// SPDX-License-Identifier: MIT
#include "cli/file_series.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/text_format.hpp"
#include "cli/user_file.hpp"
#include "session/command/sudo_user.hpp"
#include "stream/run_clock.hpp"

namespace rtev::cli {
namespace {

constexpr const char* own_folder_hint = "write to a folder where only you may write (-o)";

/// Gives each file of a series the next number, with the rights of the user. The last one is replaced.
Result<void> shift_files(const std::string& path, std::size_t max_files) {
  const auto rights = FileRights::of_caller();
  if (!rights) return std::unexpected(rights.error());
  const auto place = resolve_path(path, calling_user(), writing);
  if (!place) return std::unexpected(place.error());
  const int directory = place->directory.get();
  for (std::size_t number = max_files - 1; number > 0; --number) {
    const std::string from = number == 1 ? place->name : numbered_name(place->name, number - 1);
    const std::string to = numbered_name(place->name, number);
    // Replaces a link instead of following it.
    if (::renameat(directory, from.c_str(), directory, to.c_str()) != 0 && errno != ENOENT)
      return errno_error(errno, "cannot rename", fmt::format("{} to {}", from, to), own_folder_hint);
  }
  return {};
}

/// Fails if another user has a file by the name of one of the series: in folders like /tmp it could not be replaced.
Result<void> check_names(const std::string& path, std::size_t max_files) {
  const auto rights = FileRights::of_caller();
  if (!rights) return std::unexpected(rights.error());
  const auto place = resolve_path(path, calling_user(), writing);
  if (!place) return std::unexpected(place.error());
  for (std::size_t number = 1; number < max_files; ++number) {
    const std::string name = numbered_name(place->name, number);
    struct stat status{};
    if (::fstatat(place->directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (status.st_uid != calling_user())
      return std::unexpected(Error{.what = "cannot write several files in place of",
                                   .subject = path,
                                   .why = escaped(name) + " belongs to " + name_of_user(status.st_uid),
                                   .hint = own_folder_hint});
  }
  return {};
}

std::string describe(const FreeSpaceFloor& floor) {
  return floor.share > 0 ? fmt::format("{:g}%", floor.share * 100) : fmt::format("{}", Size{floor.bytes});
}

Result<void> check_disk(const FdOutput& file, const OutputOptions& options) {
  if (!file.is_regular_file() || options.path.empty()) {
    if (options.disk.max_files == 0 || file.is_regular_file()) return {};
    return std::unexpected(Error{.what = "cannot write several files in place of",
                                 .subject = file.name(),
                                 .why = "it is not a regular file",
                                 .hint = "omit --max-files, or give another file with -o"});
  }
  const DiskSpace space = space_of(file.fd());
  if (!is_low(space, options.disk.min_free)) return {};
  return std::unexpected(
      Error{.what = "cannot write to",
            .subject = file.name(),
            .why = fmt::format("only {} of {} are free on its disk, and --min-free is {}", Size{space.available},
                               Size{space.size}, describe(options.disk.min_free)),
            .hint = "free some space, write elsewhere with -o, or lower --min-free"});
}

}  // namespace

const std::optional<Error>& FileSeries::Errors::error() const {
  return series_.error_ ? series_.error_ : series_.file_->error();
}

FileSeries::FileSeries(OutputOptions options, Format format, std::unique_ptr<StreamFile> file)
    : options_(std::move(options)), format_(format), file_(std::move(file)) {}

Result<std::unique_ptr<FileSeries>> FileSeries::open(const OutputOptions& options, Format format) {
  auto file = StreamFile::open(options, format);
  if (!file) return std::unexpected(std::move(file.error()));
  if (auto good = check_disk((*file)->file(), options); !good) return std::unexpected(std::move(good.error()));
  if (options.disk.max_files > 1) {
    if (auto good = check_names(options.path, options.disk.max_files); !good)
      return std::unexpected(std::move(good.error()));
  }
  return std::unique_ptr<FileSeries>(new FileSeries(options, format, std::move(*file)));
}

void FileSeries::header(const RunHeader& header) {
  header_ = header;
  time_ns_ = header.start_ns;
  file_->header(header);
}

void FileSeries::consume(const Batch& batch, const Registry& registry) {
  if (!is_complete_) file_->consume(batch, registry);
}

void FileSeries::advance(std::uint64_t time_ns, const Registry& registry) {
  time_ns_ = std::max(time_ns_, time_ns);
  if (!is_complete_) file_->advance(time_ns, registry);
}

void FileSeries::flush() {
  if (!is_complete_) file_->flush();
}

bool FileSeries::wants_checkpoint() const {
  return is_rotating() && is_file_full() && !output().error();
}

void FileSeries::checkpoint(const RunSummary& so_far, const Registry& registry) {
  if (!wants_checkpoint()) return;
  RunSummary part = figures_.summary(so_far);
  part.end_ns = time_ns_;
  file_->summary(part, figures_.registry(registry, false));
  figures_.begin(time_ns_, so_far, registry);
  complete_previous();
  previous_ = std::move(file_);
  const auto shifted = shift_files(options_.path, options_.disk.max_files);
  auto next = shifted ? StreamFile::open(options_, format_) : std::unexpected(shifted.error());
  if (!next) {
    if (!error_) error_ = std::move(next.error());
    file_ = std::move(previous_);
    is_complete_ = true;
    return;
  }
  file_ = std::move(*next);
  ++files_;
  RunHeader header = header_;
  header.start_ns = time_ns_;
  follow_clock(header);
  file_->header(header);
}

void FileSeries::summary(const RunSummary& summary, const Registry& registry) {
  if (!is_complete_) {
    if (figures_.has_begun()) {
      file_->summary(figures_.summary(summary), figures_.registry(registry, true));
    } else {
      file_->summary(summary, registry);
    }
  }
  complete_previous();
  file_->wait();
}

void FileSeries::complete_previous() {
  if (!previous_) return;
  previous_->wait();
  if (!error_) error_ = previous_->error();
  completed_bytes_ += previous_->file().written();
  kept_bytes_.push_back(previous_->file().written());
  previous_.reset();
  if (kept_bytes_.size() < options_.disk.max_files) return;
  ++removed_files_;
  removed_bytes_ += kept_bytes_.front();
  kept_bytes_.pop_front();
}

bool FileSeries::has_to_end() {
  if (ended_by_ == Full::no && file_->file().is_disk_low()) ended_by_ = Full::disk_low;
  if (ended_by_ == Full::no && !is_rotating() && is_file_full()) ended_by_ = Full::max_size;
  return ended_by_ != Full::no;
}

std::uint64_t FileSeries::written() const {
  return completed_bytes_ + (previous_ ? previous_->file().written() : 0) + file_->file().written();
}

}  // namespace rtev::cli
