// SPDX-License-Identifier: MIT
#include "session/rootless/directory_watch.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "inspect/proc_lines.hpp"

namespace rtev {
namespace {

/// Bounds the work of a listing.
constexpr int max_ring_names = 1 << 16;

std::string name_of(std::int32_t number) {
  return fmt::format("{}.events", number);
}

}  // namespace

DirectoryWatch::DirectoryWatch(std::string path)
    : path_(std::move(path)),
      directory_(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      watch_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  // A runtime sets the size of its file when it begins a ring, also in a file that is there already: IN_MODIFY.
  if (::inotify_add_watch(watch_.get(), path_.c_str(), IN_CREATE | IN_MOVED_TO | IN_MODIFY) < 0) watch_.reset();
  known_ = list();
}

std::set<std::int32_t> DirectoryWatch::list() const {
  std::set<std::int32_t> found;
  UniqueFd copy(::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy) return found;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(copy.get()), ::closedir);
  if (!entries) return found;
  copy.release();  // the stream closes it
  for (int seen = 0; seen < max_ring_names; ++seen) {
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr) break;
    if (const auto number = ring_number(entry->d_name)) found.insert(*number);
  }
  return found;
}

/// False if events are missing.
bool DirectoryWatch::take_events(std::set<std::int32_t>& found) {
  if (!watch_) return false;
  bool complete = true;
  alignas(inotify_event) std::array<char, 1 << 14> events;
  while (true) {
    const ssize_t size = ::read(watch_.get(), events.data(), events.size());
    if (size <= 0) return complete;
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      const auto* const event = reinterpret_cast<const inotify_event*>(events.data() + at);
      at += sizeof *event + event->len;
      complete &= (event->mask & IN_Q_OVERFLOW) == 0;
      if (event->len == 0) continue;
      if (const auto number = ring_number(event->name)) found.insert(*number);
    }
  }
}

std::vector<std::int32_t> DirectoryWatch::take() {
  std::set<std::int32_t> found;
  if (!take_events(found)) {
    std::set<std::int32_t> listed = list();
    for (const std::int32_t number : listed)
      if (!known_.contains(number)) found.insert(number);
    known_ = std::move(listed);
  }
  return {found.begin(), found.end()};
}

OpenedRing DirectoryWatch::open(std::int32_t number) const {
  const std::string name = name_of(number);
  OpenedRing ring{.fd = UniqueFd(::openat(directory_.get(), name.c_str(),
                                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)),
                  .path = path_ + '/' + name};
  struct stat status{};
  if (ring.fd && (::fstat(ring.fd.get(), &status) != 0 || !S_ISREG(status.st_mode))) ring.fd.reset();
  return ring;
}

void DirectoryWatch::remove(std::int32_t number, const RingFileId& file) const {
  const std::string name = name_of(number);
  struct stat status{};
  if (::fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      RingFileId{status.st_dev, status.st_ino} == file)
    ::unlinkat(directory_.get(), name.c_str(), 0);
}

}  // namespace rtev
