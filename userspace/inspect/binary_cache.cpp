// SPDX-License-Identifier: MIT
#include "inspect/binary_cache.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rtev {
namespace {

std::int64_t nanoseconds(const timespec& time) {
  // Wraps around for impossible times. The result still identifies the file.
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
                                   static_cast<std::uint64_t>(time.tv_nsec));
}

}  // namespace

Result<FileIdentity> BinaryCache::identify(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return errno_error(errno, "cannot identify program");
  return FileIdentity{.device = status.st_dev,
                      .inode = status.st_ino,
                      .size = static_cast<std::uint64_t>(status.st_size),
                      .modified_ns = nanoseconds(status.st_mtim),
                      .changed_ns = nanoseconds(status.st_ctim)};
}

std::optional<std::shared_ptr<const Binary>> BinaryCache::find(const FileIdentity& identity) const {
  const std::lock_guard lock{mutex_};
  const auto known = binaries_.find(identity);
  return known == binaries_.end() ? std::nullopt : std::optional(known->second);
}

std::shared_ptr<const Binary> BinaryCache::insert(const FileIdentity& identity, std::optional<RuntimeBinary> runtime) {
  const std::lock_guard lock{mutex_};
  if (const auto known = binaries_.find(identity); known != binaries_.end()) return known->second;
  if (binaries_.size() >= max_size_) {
    // A binary that is held is kept: under a second id the same functions would be probed twice.
    std::erase_if(binaries_, [](const auto& entry) { return entry.second.use_count() <= 1; });
    max_size_ = std::max(capacity_, 2 * binaries_.size());
  }
  std::shared_ptr<const Binary> binary;
  if (runtime) binary = std::make_shared<const Binary>(++last_id_, std::move(*runtime));
  return binaries_.emplace(identity, std::move(binary)).first->second;
}

std::size_t BinaryCache::size() const {
  const std::lock_guard lock{mutex_};
  return binaries_.size();
}

std::size_t BinaryCache::Hash::operator()(const FileIdentity& identity) const {
  // Device and inode differ for nearly all files; those in one bucket are compared in full.
  return static_cast<std::size_t>((identity.inode ^ identity.device << 40) * 0x9e3779b97f4a7c15u);
}

}  // namespace rtev
