// SPDX-License-Identifier: MIT
#include "inspect/binary_cache.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <iterator>
#include <utility>

namespace rtev {
namespace {

std::int64_t nanoseconds(const timespec& time) {
  // Wraps for times that a file system made up, which serves an identity as well.
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

std::optional<std::shared_ptr<const Binary>> BinaryCache::find(const FileIdentity& identity) {
  const std::lock_guard lock{mutex_};
  if (const auto* known = touch(identity)) return *known;
  return std::nullopt;
}

std::shared_ptr<const Binary> BinaryCache::insert(const FileIdentity& identity, std::optional<RuntimeBinary> runtime) {
  const std::lock_guard lock{mutex_};
  if (const auto* known = touch(identity)) return *known;
  std::shared_ptr<const Binary> binary;
  if (runtime) binary = std::make_shared<const Binary>(++last_id_, std::move(*runtime));
  entries_.push_front({identity, binary});
  index_.emplace(identity, entries_.begin());
  evict();
  return binary;
}

std::size_t BinaryCache::size() const {
  const std::lock_guard lock{mutex_};
  return entries_.size();
}

const std::shared_ptr<const Binary>* BinaryCache::touch(const FileIdentity& identity) {
  const auto found = index_.find(identity);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &found->second->binary;
}

void BinaryCache::evict() {
  // A binary that somebody holds is kept: under a second id the same functions would be probed twice. Each is moved out
  // of the way once at the most, so with nothing else left the cache grows with what is in use.
  for (std::size_t untried = entries_.size(); entries_.size() > capacity_ && untried > 0; --untried) {
    const auto oldest = std::prev(entries_.end());
    if (oldest->binary.use_count() > 1) {
      entries_.splice(entries_.begin(), entries_, oldest);
    } else {
      index_.erase(oldest->identity);
      entries_.erase(oldest);
    }
  }
}

std::size_t BinaryCache::Hash::operator()(const FileIdentity& identity) const {
  // Device and inode differ for nearly all files; those in one bucket are compared in full.
  return static_cast<std::size_t>((identity.inode ^ identity.device << 40) * 0x9e3779b97f4a7c15u);
}

}  // namespace rtev
