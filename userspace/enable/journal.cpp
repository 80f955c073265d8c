// SPDX-License-Identifier: MIT
#include "enable/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base/file_io.hpp"
#include "base/parse.hpp"
#include "base/state_directory.hpp"
#include "inspect/procfs.hpp"

namespace rtev::enable {
namespace {

constexpr std::size_t max_entry_bytes = 8192;
constexpr const char* lock_name = "lock";

/// More than any pid of Linux.
constexpr std::int64_t pids = 1 << 22;

/// Each process has a byte of the lock's file: a run that hangs with the lock of one keeps no other process waiting.
struct flock byte_of(std::int64_t place) {
  struct flock byte{};
  byte.l_whence = SEEK_SET;
  byte.l_start = place;
  byte.l_len = 1;
  return byte;
}

void unlock(int file, struct flock bytes) {
  bytes.l_type = F_UNLCK;
  ::fcntl(file, F_OFD_SETLK, &bytes);
}

/// Calls `visit` for each number of an entry, in the order in which the file has them.
void visit_numbers(auto& entry, auto visit) {
  auto& hook = entry.claim.hook;
  visit(entry.owner.pid);
  visit(entry.owner.start_ticks);
  visit(entry.pid);
  visit(entry.start_ticks);
  visit(entry.program.first);
  visit(entry.program.second);
  visit(entry.user);
  for (auto* number : {&hook.address, &hook.original, &hook.replacement, &hook.thread_hook, &hook.witness,
                       &hook.witness_before, &hook.request, &entry.ring.device, &entry.ring.inode})
    visit(*number);
}

/// Numbers with a blank behind each, then a path.
std::optional<JournalEntry> parse_entry(std::string_view text) {
  JournalEntry entry;
  bool is_whole = true;
  visit_numbers(entry, [&](auto& number) {
    const auto parsed = parse_number<std::remove_reference_t<decltype(number)>>(take_until(text, ' '));
    is_whole = is_whole && parsed;
    number = parsed.value_or(0);
  });
  entry.ring_path = text;
  return is_whole ? std::optional(std::move(entry)) : std::nullopt;
}

/// Also if nobody has waited for it yet.
bool has_ended(const JournalOwner& owner) {
  const auto stat = Procfs().stat(owner.pid);
  return !stat || stat->ending || stat->start_ticks != owner.start_ticks;
}

}  // namespace

Result<Journal> Journal::open(std::filesystem::path directory) {
  const auto held = open_state_directory(directory);
  if (!held) return std::unexpected(held.error());
  // Not the directory: whoever may open a file may lock it, and an earlier version let all users open the directory.
  UniqueFd lock(::openat(held->get(), lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!lock) return errno_error(errno, "cannot open", directory / lock_name);
  return Journal(std::move(directory), std::move(lock));
}

std::optional<Journal::Lock> Journal::lock(std::int32_t pid, std::uint64_t start_ticks) const {
  const std::int64_t place = static_cast<std::int64_t>(start_ticks) * pids + pid;
  struct flock byte = byte_of(place);
  byte.l_type = F_WRLCK;
  if (::fcntl(lock_.get(), F_OFD_SETLK, &byte) != 0) return std::nullopt;
  return Lock(lock_.get(), place);
}

Journal::Lock::~Lock() {
  if (file_ >= 0) unlock(file_, byte_of(place_));
}

void Journal::unlock_all() const {
  unlock(lock_.get(), {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0});
}

std::filesystem::path Journal::path_of(std::int32_t pid, std::uint64_t start_ticks) const {
  return directory_ / state_file_name(pid, start_ticks);
}

Result<void> Journal::add(const JournalEntry& entry) const {
  const std::filesystem::path path = path_of(entry.pid, entry.start_ticks);
  std::string text;
  visit_numbers(entry, [&](const auto& number) { text += fmt::format("{} ", number); });
  text += entry.ring_path;
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return errno_error(errno, "cannot write", path);
  // One write: an entry is there as a whole or, after a kill, not at all.
  if (::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return {};
  const int code = errno;
  ::unlink(path.c_str());
  return errno_error(code, "cannot write", path);
}

void Journal::remove(std::int32_t pid, std::uint64_t start_ticks) const {
  ::unlink(path_of(pid, start_ticks).c_str());
}

std::vector<Journal::Left> Journal::left_to(const JournalOwner& own) const {
  std::vector<Left> left;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(directory_, error)) {
    const std::string name = file.path().filename();
    if (name == lock_name) continue;
    std::string_view rest(name);
    const auto pid = parse_number<std::int32_t>(take_until(rest, '-'));
    const auto start_ticks = parse_number<std::uint64_t>(rest);
    // Another run may be writing the entry.
    auto locked = lock(pid.value_or(0), start_ticks.value_or(0));
    if (!locked) continue;
    const auto text = read_small_file(file.path(), max_entry_bytes);
    auto entry = text ? parse_entry(*text) : std::nullopt;
    if (!entry || entry->pid != pid || entry->start_ticks != start_ticks)
      ::unlink(file.path().c_str());  // killed before it was written, and so before the hook was replaced
    else if (entry->owner == own || has_ended(entry->owner))
      left.push_back({.entry = std::move(*entry), .lock = std::move(*locked)});
  }
  return left;
}

}  // namespace rtev::enable
