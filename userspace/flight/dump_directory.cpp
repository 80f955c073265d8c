// SPDX-License-Identifier: MIT
#include "flight/dump_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <numeric>
#include <utility>

#include "base/text_format.hpp"

namespace rtev::flight {
namespace {

constexpr std::string_view prefix = "rtev-", suffix = ".fxt.gz";
constexpr std::string_view time_pattern = "00000000T000000.000000Z";
constexpr mode_t private_mode = 0600;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_lower(char c) {
  return (c >= 'a' && c <= 'z') || c == '-';
}
bool is_plain(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
}

bool is_time(std::string_view text) {
  return std::ranges::equal(text, time_pattern,
                            [](char c, char pattern) { return pattern == '0' ? is_digit(c) : c == pattern; });
}

/// Takes what follows the last '-' that a number or a word may have before it.
std::string_view take_last(std::string_view& text) {
  const std::size_t dash = text.rfind('-');
  if (dash == std::string_view::npos) return {};
  const std::string_view last = text.substr(dash + 1);
  text.remove_suffix(last.size() + 1);
  return last;
}

/// Where the time begins in "HOST-TIME-TRIGGER"; npos if it is none.
std::size_t find_time(std::string_view text) {
  for (std::size_t at = text.size(); at-- > 0;) {
    if (text[at] != '-') continue;
    if (is_time(text.substr(at + 1, time_pattern.size()))) return at + 1;
  }
  return std::string_view::npos;
}

std::string time_part(const std::string& name) {
  const std::size_t at = find_time(name);
  return at == std::string::npos ? std::string() : name.substr(at, time_pattern.size());
}

}  // namespace

std::string DumpName::text() const {
  constexpr std::uint64_t second_ns = 1'000'000'000, us_ns = 1'000;
  const auto seconds = static_cast<std::time_t>(realtime_ns / second_ns);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  constexpr std::size_t max_host = 64;
  std::string plain_host = host.substr(0, max_host);
  for (char& c : plain_host)
    if (!is_plain(c)) c = '_';
  return fmt::format("{}{}-{:04}{:02}{:02}T{:02}{:02}{:02}.{:06}Z-{}-{}{}", prefix,
                     plain_host.empty() ? "localhost" : plain_host, utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec, realtime_ns % second_ns / us_ns, trigger, pid, suffix);
}

bool DumpName::is_one(std::string_view name) {
  if (name.ends_with(partial_suffix)) name.remove_suffix(partial_suffix.size());
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return false;
  name.remove_prefix(prefix.size());
  name.remove_suffix(suffix.size());
  const std::string_view pid = take_last(name);
  if (pid.empty() || !std::ranges::all_of(pid, is_digit)) return false;
  const std::size_t time = find_time(name);
  if (time == std::string_view::npos || time < 2) return false;
  const std::string_view host = name.substr(0, time - 1), rest = name.substr(time + time_pattern.size());
  return std::ranges::all_of(host, is_plain) && rest.size() > 1 && rest.front() == '-' &&
         std::ranges::all_of(rest.substr(1), is_lower);
}

std::vector<DumpDirectory::File> DumpDirectory::files() const {
  std::vector<File> found;
  // Another description of the directory: this one has a position of its own.
  const int fd = ::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return found;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(fd), ::closedir);
  if (!directory) {
    ::close(fd);
    return found;
  }
  while (const dirent* const entry = ::readdir(directory.get())) {
    if (!DumpName::is_one(entry->d_name)) continue;
    struct stat status{};
    if (::fstatat(directory_.get(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) continue;
    found.push_back({.name = entry->d_name, .bytes = static_cast<std::uint64_t>(status.st_blocks) * 512});
  }
  std::ranges::sort(found, [](const File& one, const File& other) {
    return std::pair(time_part(one.name), one.name) < std::pair(time_part(other.name), other.name);
  });
  return found;
}

std::size_t DumpDirectory::remove_partial() {
  std::size_t removed = 0;
  for (const File& file : files()) {
    if (!file.name.ends_with(partial_suffix)) continue;
    const UniqueFd fd(::openat(directory_.get(), file.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    // Who writes it holds the lock.
    if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) continue;
    if (::unlinkat(directory_.get(), file.name.c_str(), 0) == 0) ++removed;
  }
  return removed;
}

Result<UniqueFd> DumpDirectory::create(const std::string& name) {
  const DiskSpace space = space_of(directory_.get());
  if (is_low(space, options_.min_free)) {
    return std::unexpected(
        Error{.what = "cannot write a dump to",
              .subject = path_,
              .why = fmt::format("only {} of {} are free on its disk", Size{space.available}, Size{space.size}),
              .hint = "free some space, or lower --min-free",
              .code = ENOSPC});
  }
  const std::string partial = name + std::string(partial_suffix);
  UniqueFd fd(
      ::openat(directory_.get(), partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, private_mode));
  if (!fd) return errno_error(errno, "cannot write a dump to", path_of(partial));
  ::flock(fd.get(), LOCK_EX | LOCK_NB);
  return fd;
}

Result<void> DumpDirectory::complete(const std::string& name, int fd) {
  if (::fsync(fd) != 0) return errno_error(errno, "cannot write a dump to", path_of(name));
  const std::string partial = name + std::string(partial_suffix);
  if (::renameat(directory_.get(), partial.c_str(), directory_.get(), name.c_str()) != 0)
    return errno_error(errno, "cannot rename", path_of(partial));
  ::fsync(directory_.get());
  return {};
}

void DumpDirectory::discard(const std::string& name) {
  ::unlinkat(directory_.get(), (name + std::string(partial_suffix)).c_str(), 0);
}

std::size_t DumpDirectory::make_room(const std::string& newest) {
  const std::vector<File> all = files();
  std::uint64_t bytes = 0;
  for (const File& file : all) bytes += file.bytes;
  std::size_t removed = 0;
  for (const File& file : all) {
    if (bytes <= options_.max_bytes) break;
    if (file.name == newest || file.name.ends_with(partial_suffix)) continue;
    if (::unlinkat(directory_.get(), file.name.c_str(), 0) != 0) continue;
    bytes -= file.bytes;
    ++removed;
  }
  return removed;
}

}  // namespace rtev::flight
