// SPDX-License-Identifier: MIT
#include "enable/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/file_io.hpp"
#include "base/parse.hpp"
#include "base/state_directory.hpp"

namespace rtev::enable {
namespace {

constexpr std::size_t max_entry_bytes = 4096;

/// Others hold the lock for some ten milliseconds.
constexpr std::chrono::milliseconds lock_interval{1};
constexpr int max_lock_tries = 500;

/// The numbers of a line, separated by blanks.
template <std::size_t Count>
std::optional<std::array<std::uint64_t, Count>> parse_numbers(std::string_view line) {
  std::array<std::uint64_t, Count> numbers{};
  for (std::uint64_t& number : numbers) {
    const std::string_view word = line.substr(0, line.find_first_of(" \n"));
    const auto parsed = parse_number<std::uint64_t>(word);
    if (!parsed) return std::nullopt;
    number = *parsed;
    line.remove_prefix(std::min(line.size(), word.size() + 1));
  }
  return numbers;
}

}  // namespace

Result<Journal> Journal::open(std::filesystem::path directory) {
  auto fd = open_state_directory(directory);
  if (!fd) return std::unexpected(std::move(fd.error()));
  return Journal(std::move(directory), std::move(*fd));
}

bool Journal::lock() const {
  for (int tries = 0; tries < max_lock_tries; ++tries) {
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0) return true;
    std::this_thread::sleep_for(lock_interval);
  }
  return false;
}

void Journal::unlock() const {
  ::flock(fd_.get(), LOCK_UN);
}

std::filesystem::path Journal::path_of(const JournalEntry& entry) const {
  return directory_ / state_file_name(entry.pid, entry.start_ticks);
}

Result<void> Journal::add(const JournalEntry& entry) const {
  const std::filesystem::path path = path_of(entry);
  const ReplacedHook& hook = entry.hook;
  const std::string line =
      fmt::format("{} {} {} {} {} {} {} {} {}\n", entry.pid, entry.start_ticks, hook.address, hook.original,
                  hook.replacement, hook.thread_hook, hook.witness, hook.witness_before, hook.request);
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return errno_error(errno, "cannot write", path);
  // One write: an entry is there as a whole or, after a kill, not at all.
  if (::write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size())) return {};
  const int code = errno;
  ::unlink(path.c_str());
  return errno_error(code, "cannot write", path);
}

void Journal::remove(const JournalEntry& entry) const {
  ::unlink(path_of(entry).c_str());
}

std::vector<JournalEntry> Journal::entries() const {
  std::vector<JournalEntry> entries;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(directory_, error)) {
    const auto text = read_small_file(file.path(), max_entry_bytes);
    const auto numbers = text ? parse_numbers<9>(*text) : std::nullopt;
    if (!numbers) {
      // Killed before it was written, and so before the hook was replaced.
      ::unlink(file.path().c_str());
      continue;
    }
    const auto& [pid, ticks, address, original, replacement, thread_hook, witness, witness_before, request] = *numbers;
    entries.push_back({.pid = static_cast<std::int32_t>(pid),
                       .start_ticks = ticks,
                       .hook = {.address = address,
                                .original = original,
                                .replacement = replacement,
                                .thread_hook = thread_hook,
                                .witness = witness,
                                .witness_before = witness_before,
                                .request = request}});
  }
  return entries;
}

}  // namespace rtev::enable
