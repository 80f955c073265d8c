// SPDX-License-Identifier: MIT
#include "inspect/enabled_list.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "base/file_io.hpp"
#include "base/parse.hpp"
#include "base/proc_files.hpp"
#include "base/state_directory.hpp"
#include "base/unique_fd.hpp"

namespace rtev {

namespace {

/// Before the pid of who writes it: an entry that is not complete.
constexpr std::string_view new_prefix = "new-";

/// The program that a process runs: device and inode, as text. An entry of another program is none.
std::string program_of(std::int32_t pid) {
  struct statx status{};
  const std::string path = fmt::format("/proc/{}/exe", pid);
  const auto [directory, name] = proc_place(path);
  if (::statx(directory, name, AT_STATX_DONT_SYNC, STATX_INO, &status) != 0) return {};
  return fmt::format("{}:{} {}\n", status.stx_dev_major, status.stx_dev_minor, status.stx_ino);
}

constexpr std::size_t max_entry_bytes = PATH_MAX + 256;
constexpr std::string_view on_text = "on", run_text = "run", off_text = "off";

std::filesystem::path path_of(std::int32_t pid, std::uint64_t start_ticks) {
  return std::filesystem::path(enabled_directory) / state_file_name(pid, start_ticks);
}

std::optional<std::string> read_entry(std::int32_t pid, std::uint64_t start_ticks) {
  return read_small_file(path_of(pid, start_ticks), max_entry_bytes);
}

/// What follows the program: times and places, a word, the user, the inode and the path of the ring.
std::optional<EnabledNote> parse_note(std::string_view text) {
  const auto since_ticks = parse_number<std::uint64_t>(take_until(text, ' '));
  const auto place = parse_number<std::uint64_t>(take_until(text, ' '));
  const std::string_view word = take_until(text, ' ');
  const auto user = parse_number<std::uint32_t>(take_until(text, ' '));
  const auto inode = parse_number<std::uint64_t>(take_until(text, ' '));
  if (!since_ticks || !place || !user || !inode || (word != on_text && word != run_text && word != off_text))
    return std::nullopt;
  return EnabledNote{.enabled = word == off_text ? Enabled::off : Enabled::on,
                     .for_a_run = word == run_text,
                     .since_ticks = *since_ticks,
                     .place = *place,
                     .user = *user,
                     .ring_inode = *inode,
                     .ring_path = std::string(text)};
}

}  // namespace

Result<void> note_enabled(std::int32_t pid, std::uint64_t start_ticks, EnabledNote note) {
  const auto directory = open_state_directory(enabled_directory);
  if (!directory) return std::unexpected(directory.error());
  const std::string name = state_file_name(pid, start_ticks);
  // A tracer that sudo started is not root when it looks, so it may not read the entry: how it comes tells the state.
  const bool is_on = note.enabled == Enabled::on;
  const std::string written = is_on ? fmt::format("{}{}", new_prefix, ::getpid()) : name;
  UniqueFd file(::openat(directory->get(), written.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                         S_IRUSR | S_IWUSR));
  const std::string_view word = !is_on ? off_text : note.for_a_run ? run_text : on_text;
  const std::string entry = fmt::format("{}{} {} {} {} {} {}", program_of(pid), note.since_ticks, note.place, word,
                                        note.user, note.ring_inode, note.ring_path);
  const bool is_written = file && ::write(file.get(), entry.data(), entry.size()) == static_cast<ssize_t>(entry.size());
  file.reset();  // now, under this name
  if (!is_written || (is_on && ::renameat(directory->get(), written.c_str(), directory->get(), name.c_str()) != 0))
    return errno_error(errno, "cannot write", std::filesystem::path(enabled_directory) / name);
  return {};
}

std::optional<EnabledNote> last_enabled_note(std::int32_t pid, std::uint64_t start_ticks) {
  const auto entry = read_entry(pid, start_ticks);
  if (!entry) return std::nullopt;
  std::string_view rest = *entry;
  take_until(rest, '\n');
  return parse_note(rest);
}

std::optional<EnabledNote> enabled_note(std::int32_t pid, std::uint64_t start_ticks) {
  const auto entry = read_entry(pid, start_ticks);
  const std::string program = entry ? program_of(pid) : std::string();
  if (program.empty() || !entry->starts_with(program)) return std::nullopt;
  return parse_note(std::string_view(*entry).substr(program.size()));
}

std::optional<Enabled> enabled_by_us(std::int32_t pid, std::uint64_t start_ticks) {
  if (const auto note = enabled_note(pid, start_ticks)) return note->enabled;
  const std::filesystem::path path = path_of(pid, start_ticks);
  const bool is_hidden = ::access(path.c_str(), R_OK) != 0 && errno == EACCES;
  return is_hidden ? std::nullopt : std::optional(Enabled::never);
}

void forget_enabled(std::int32_t pid, std::uint64_t start_ticks) {
  ::unlink(path_of(pid, start_ticks).c_str());
}

std::vector<NotedProcess> forget_ended(const Procfs& procfs) {
  std::vector<NotedProcess> living;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(enabled_directory, error)) {
    const std::string name = file.path().filename();
    const bool is_new = name.starts_with(new_prefix);
    std::string_view rest = std::string_view(name).substr(is_new ? new_prefix.size() : 0);
    const auto pid = parse_number<std::int32_t>(take_until(rest, '-'));
    const auto stat = pid ? procfs.stat(*pid) : std::nullopt;
    if (!stat || stat->ending || (!is_new && state_file_name(*pid, stat->start_ticks) != name))
      ::unlink(file.path().c_str());
    else if (!is_new)
      living.push_back({.pid = *pid, .start_ticks = stat->start_ticks});
  }
  return living;
}

}  // namespace rtev
