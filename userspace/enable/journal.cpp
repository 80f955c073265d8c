// SPDX-License-Identifier: MIT
#include "enable/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
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

/// Others hold the lock for some ten milliseconds.
constexpr std::chrono::milliseconds lock_interval{1};
constexpr int max_lock_tries = 500;

/// Calls `visit` for each number of an entry, in the order in which the file has them.
void visit_numbers(auto& entry, auto visit) {
  auto& hook = entry.hook;
  visit(entry.owner.pid);
  visit(entry.owner.start_ticks);
  visit(entry.pid);
  visit(entry.start_ticks);
  visit(entry.program.first);
  visit(entry.program.second);
  visit(entry.user);
  for (auto* number : {&hook.address, &hook.original, &hook.replacement, &hook.thread_hook, &hook.witness,
                       &hook.witness_before, &hook.request, &hook.directory, &hook.directory_text, &entry.ring_inode})
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
  const auto held = open_state_directory(directory, S_IRWXU);
  if (!held) return std::unexpected(held.error());
  // Not the directory: whoever may open a file may lock it, and an earlier version let all users open the directory.
  UniqueFd lock(::openat(held->get(), lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!lock) return errno_error(errno, "cannot open", directory / lock_name);
  return Journal(std::move(directory), std::move(lock));
}

bool Journal::lock() const {
  for (int tries = 0; tries < max_lock_tries; ++tries) {
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return true;
    std::this_thread::sleep_for(lock_interval);
  }
  return false;
}

void Journal::unlock() const {
  ::flock(lock_.get(), LOCK_UN);
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

std::vector<JournalEntry> Journal::left_to(const JournalOwner& own) const {
  std::vector<JournalEntry> left;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(directory_, error)) {
    if (file.path().filename() == lock_name) continue;
    const auto text = read_small_file(file.path(), max_entry_bytes);
    auto entry = text ? parse_entry(*text) : std::nullopt;
    if (!entry)  // killed before it was written, and so before the hook was replaced
      ::unlink(file.path().c_str());
    else if (entry->owner == own || has_ended(entry->owner))
      left.push_back(std::move(*entry));
  }
  return left;
}

}  // namespace rtev::enable
