// SPDX-License-Identifier: MIT
#include "inspect/procfs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <thread>

#include "base/clock.hpp"
#include "base/file_io.hpp"
#include "base/parse.hpp"
#include "base/proc_files.hpp"
#include "base/subordinate_users.hpp"

namespace rtev {
namespace {

// A process can have about vm.max_map_count mappings: 65530, but distributions raise it to a million. Reading 65530 of
// them takes about 30 ms of cpu time.
constexpr std::uint64_t max_mappings_cpu_ns = 200'000'000;
constexpr std::size_t max_mapping_bytes = 8192;  // of one line; a path has up to 4 KiB, and escapes
// "Groups:" of status lists up to 65536 numbers, before the line that is wanted.
constexpr std::size_t max_status_bytes = 1u << 20;
/// Of uid_map: 340 lines at most. The user namespace of the host has one, of all users.
constexpr std::size_t max_uid_map_bytes = 1u << 16;
constexpr std::uint64_t all_users = UINT32_MAX;
// The kernel takes 6 MiB of arguments and environment at the most.
constexpr std::size_t max_environment_bytes = 6u << 20;
constexpr std::size_t max_small_bytes = 4096;
constexpr std::size_t max_cgroup_bytes = 64u << 10;  // a line for each hierarchy, each with a path
constexpr std::size_t max_children_bytes = 1u << 20;
constexpr std::size_t max_mountinfo_bytes = 8u << 20;

/// Any thread may end before it is used, so a few are returned. Threads that have ended are looked at, too.
constexpr std::size_t max_living_threads = 4, max_threads_looked_at = 256;

/// For as long as a busy host may keep a process from going on with its exec: pages of the program come from its disk.
constexpr int max_looks_at_environment = 1000;
constexpr std::chrono::milliseconds environment_retry{1};

/// Target of a link to a file, without " (deleted)".
std::string file_name(const std::filesystem::path& path) {
  std::string target = link_target(path);
  constexpr std::string_view deleted = " (deleted)";
  if (target.ends_with(deleted)) target.resize(target.size() - deleted.size());
  return target;
}

std::filesystem::path mapping_link(const Mapping& mapping) {
  return fmt::format("map_files/{:x}-{:x}", mapping.begin, mapping.end);
}

std::filesystem::path process_path(const std::filesystem::path& root, std::int32_t pid, std::string_view name) {
  return root / std::to_string(pid) / name;
}

/// True if this is the file of the mapping. What fstat(2) says of a file is not what the kernel prints of its mappings
/// on every file system, so it is mapped here, too.
bool is_mapped_file(int fd, const Mapping& mapping) {
  const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const mapped = ::mmap(nullptr, size, PROT_NONE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return false;
  bool is_same = false;
  Procfs().visit_mappings(::getpid(), [&](const Mapping& own) {
    if (own.begin != reinterpret_cast<std::uint64_t>(mapped)) return true;
    is_same = own.device == mapping.device && own.inode == mapping.inode;
    return false;
  });
  ::munmap(mapped, size);
  return is_same;
}

std::optional<ProcessStat> read_stat(const std::filesystem::path& path) {
  const auto text = read_small_file(path, max_small_bytes);
  return text ? parse_stat(*text) : std::nullopt;
}

}  // namespace

std::vector<std::int32_t> Procfs::pids() const {
  std::vector<std::int32_t> found;
  visit_names(root_, [&found](std::string_view name) {
    const auto pid = parse_number<std::int32_t>(name);
    if (pid && *pid > 0) found.push_back(*pid);
    return true;
  });
  return found;
}

std::optional<ProcessStat> Procfs::stat(std::int32_t pid) const {
  return read_stat(process_path(root_, pid, "stat"));
}

std::vector<std::int32_t> Procfs::living_threads(std::int32_t pid) const {
  std::vector<std::int32_t> found;
  const auto leader = stat(pid);
  if (!leader || !leader->ending || leader->threads < 2) return found;
  std::size_t looked_at = 0;
  const std::filesystem::path threads = process_path(root_, pid, "task");
  visit_names(threads, [&](std::string_view name) {
    const auto tid = parse_number<std::int32_t>(name);
    const auto thread = tid && *tid > 0 ? read_stat(threads / name / "stat") : std::nullopt;
    if (thread && !thread->ending) found.push_back(*tid);
    return found.size() < max_living_threads && ++looked_at < max_threads_looked_at;
  });
  return found;
}

/// What `read` returns for /proc/PID. Once the main thread has ended, memory, program and namespaces are missing there.
/// They are still in /proc/TID of the other threads, which no directory lists.
template <typename Read>
auto Procfs::from_any_thread(std::int32_t pid, Read read) const {
  const auto is_known = [](const auto& value) {
    if constexpr (requires { value.empty(); })
      return !value.empty();
    else
      return value.has_value();
  };
  auto own = read(pid);
  if (is_known(own)) return own;
  for (const std::int32_t tid : living_threads(pid)) {
    if (auto again = read(tid); is_known(again)) return again;
  }
  return own;
}

namespace {

/// What stands behind "Key:" in /proc/PID/status; empty if the line is not there. The name in the first line cannot
/// forge another one: the kernel escapes its newlines.
std::string status_line(const std::filesystem::path& root, std::int32_t pid, std::string_view key) {
  const auto text = read_small_file(process_path(root, pid, "status"), max_status_bytes);
  if (!text) return {};
  for (std::string_view rest{*text}; !rest.empty();) {
    std::string_view line = take_until(rest, '\n');
    if (line.starts_with(key)) return std::string(line.substr(key.size()));
  }
  return {};
}

/// Empty where the kernel does not show it.
std::optional<std::int64_t> clock_offset(const std::filesystem::path& root, std::int32_t pid) {
  // timens_offsets shows the time namespace of the process's future children. After unshare(2) that is not the one of
  // the process itself, which is still the one it began in, nearly always the host's.
  const auto own = link_target(process_path(root, pid, "ns/time"));
  const auto children = link_target(process_path(root, pid, "ns/time_for_children"));
  if (own != children && !own.empty() && !children.empty()) return 0;

  const auto text = read_small_file(process_path(root, pid, "timens_offsets"), max_small_bytes);
  if (!text) return std::nullopt;
  for (std::string_view rest{*text}; !rest.empty();) {
    std::string_view line = take_until(rest, '\n');
    if (take_word(line) != "monotonic") continue;
    const auto seconds = parse_number<std::int64_t>(take_word(line));
    const auto nanoseconds = parse_number<std::int64_t>(take_word(line));
    constexpr std::int64_t second = 1'000'000'000;
    std::int64_t offset = 0;
    if (!seconds || !nanoseconds || __builtin_mul_overflow(*seconds, second, &offset) ||
        __builtin_add_overflow(offset, *nanoseconds, &offset) || __builtin_sub_overflow(0, offset, &offset))
      return std::nullopt;
    return offset;
  }
  return std::nullopt;
}

}  // namespace

std::int32_t Procfs::last_pid() const {
  const auto text = read_small_file(root_ / "loadavg", max_small_bytes).value_or(std::string{});
  std::string_view rest{text}, line = take_until(rest, '\n');
  for (int average = 0; average < 4; ++average) take_word(line);  // and how many threads run
  return parse_number<std::int32_t>(take_word(line)).value_or(0);
}

std::vector<std::int32_t> Procfs::pids_after(std::int32_t pid) const {
  std::vector<std::int32_t> pids;
  const std::int32_t last = last_pid();
  if (pid <= 0 || last <= 0) return pids;
  const auto text = read_small_file(root_ / "sys/kernel/pid_max", max_small_bytes).value_or(std::string{});
  std::string_view rest{text};
  const auto end = parse_number<std::int32_t>(take_until(rest, '\n'));
  constexpr std::size_t max_pids = 1 << 16;
  while (pid != last && end && pids.size() < max_pids) {
    pid = pid + 1 < *end ? pid + 1 : 1;
    pids.push_back(pid);
  }
  return pids;
}

std::int32_t Procfs::ns_pid(std::int32_t pid) const {
  const std::string pids = status_line(root_, pid, "NSpid:");
  std::string_view rest{pids}, innermost;
  for (auto word = take_word(rest); !word.empty(); word = take_word(rest)) innermost = word;
  const auto number = parse_number<std::int32_t>(innermost);
  return number && *number > 0 ? *number : pid;
}

uid_t Procfs::user(std::int32_t pid) const {
  const std::string ids = status_line(root_, pid, "Uid:");
  std::string_view rest{ids};
  constexpr auto no_user = static_cast<uid_t>(-1);
  const auto id = parse_number<uid_t>(take_word(rest));
  return id ? charged_user(*id) : no_user;
}

bool Procfs::may_be_user(std::int32_t pid, uid_t user) const {
  const std::string ids = status_line(root_, pid, "Uid:");
  for (std::string_view rest{ids}; !rest.empty();)
    if (parse_number<uid_t>(take_word(rest)) == user) return true;
  const auto map = read_small_file(process_path(root_, pid, "uid_map"), max_uid_map_bytes);
  if (!map) return false;
  for (std::string_view lines{*map}; !lines.empty();) {
    std::string_view line = take_until(lines, '\n');
    const auto inside = parse_number<std::uint64_t>(take_word(line)),
               outside = parse_number<std::uint64_t>(take_word(line)),
               count = parse_number<std::uint64_t>(take_word(line));
    if (!inside || !outside || !count || *count == all_users) continue;
    if (user >= *outside && user - *outside < *count) return true;
  }
  return false;
}

std::optional<std::uint64_t> Procfs::max_rss_bytes(std::int32_t pid) const {
  const std::string size =
      from_any_thread(pid, [&](std::int32_t thread) { return status_line(root_, thread, "VmHWM:"); });
  std::string_view rest{size};
  const auto kibibytes = parse_number<std::uint64_t>(take_word(rest));
  if (!kibibytes || *kibibytes > UINT64_MAX / 1024) return std::nullopt;
  return *kibibytes * 1024;
}

std::string Procfs::environment(std::int32_t pid) const {
  return from_any_thread(pid, [&](std::int32_t thread) {
    return read_small_file(process_path(root_, thread, "environ"), max_environment_bytes).value_or(std::string{});
  });
}

std::vector<std::int32_t> Procfs::children(std::int32_t pid) const {
  std::vector<std::int32_t> found;
  const std::filesystem::path threads = process_path(root_, pid, "task");
  visit_names(threads, [&](std::string_view thread) {
    const auto text = read_small_file(threads / thread / "children", max_children_bytes).value_or(std::string{});
    for (std::string_view rest{text}; !rest.empty();)
      if (const auto child = parse_number<std::int32_t>(take_word(rest))) found.push_back(*child);
    return true;
  });
  return found;
}

std::string Procfs::raw_arguments(std::int32_t pid) const {
  return from_any_thread(pid, [&](std::int32_t thread) {
    const UniqueFd file = open_proc(process_path(root_, thread, "cmdline"), O_RDONLY);
    std::string text(max_small_bytes, '\0');
    const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : -1;
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  });
}

std::string Procfs::arguments(std::int32_t pid) const {
  std::string text = raw_arguments(pid);
  while (text.ends_with('\0')) text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return text;
}

ServiceIdentity Procfs::service(std::int32_t pid) const {
  const auto cgroup = read_small_file(process_path(root_, pid, "cgroup"), max_cgroup_bytes);
  return parse_service_identity(cgroup.value_or(std::string{}), environment(pid));
}

std::vector<std::int32_t> Procfs::started_with(std::string_view variable, uid_t user) const {
  std::vector<std::int32_t> found, undecided = pids();
  const auto decide = [&](std::int32_t pid) {
    struct stat status{};
    const std::filesystem::path path = process_path(root_, pid, "environ");
    const auto [directory, name] = proc_place(path.native());
    if (::fstatat(directory, name, &status, 0) != 0 || status.st_uid != user) return true;
    std::string text = environment(pid);
    if (text.empty()) {
      if (!read_small_file(path, max_environment_bytes)) return true;
      const auto before = stat(pid);
      text = environment(pid);
      const auto after = stat(pid);
      if (!before || !after || after->kernel_thread || after->ending) return true;
      // Each exec has other addresses.
      const bool is_in_exec = after->environment_end == 0 || before->environment_end != after->environment_end;
      if (text.empty()) return !is_in_exec;
    }
    for (std::string_view rest{text}; !rest.empty();) {
      if (take_until(rest, '\0') != variable) continue;
      found.push_back(pid);
      break;
    }
    return true;
  };
  // A process that is just becoming another program has no environment for a moment.
  for (int looks = 0; looks < max_looks_at_environment; ++looks) {
    std::erase_if(undecided, decide);
    if (undecided.empty()) break;
    std::this_thread::sleep_for(environment_retry);
  }
  found.insert(found.end(), undecided.begin(), undecided.end());
  return found;
}

std::string Procfs::exe_path(std::int32_t pid) const {
  return from_any_thread(pid, [&](std::int32_t thread) { return file_name(process_path(root_, thread, "exe")); });
}

/// Opens what one of /proc's magic links leads to. It belongs to the traced user: nothing but a regular file is taken,
/// and opening must neither wait (for the other end of a fifo) nor change the file's access time where that is
/// permitted.
Result<UniqueFd> Procfs::open_regular(const std::filesystem::path& path, std::int32_t pid, const char* what,
                                      const char* hint) const {
  const UniqueFd held = open_proc(path, O_PATH);
  if (!held) return errno_error(errno, what, path, errno == EPERM || errno == EACCES ? hint : "");
  if (auto safe = mount_tables_->check(held.get(), pid, careful_); !safe) {
    safe.error().what = what;
    safe.error().subject = path;
    return std::unexpected(std::move(safe.error()));
  }
  const std::string own = "/proc/self/fd/" + std::to_string(held.get());
  constexpr int flags = O_RDONLY | O_NONBLOCK;
  UniqueFd fd = open_proc(own, flags | O_NOATIME);
  if (!fd && errno == EPERM) fd = open_proc(own, flags);
  if (!fd) return errno_error(errno, what, path, errno == EPERM || errno == EACCES ? hint : "");
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return errno_error(errno, what, path);
  if (!S_ISREG(status.st_mode)) return std::unexpected(Error{what, path, "not a regular file"});
  return fd;
}

Result<UniqueFd> Procfs::open_exe(std::int32_t pid) const {
  return from_any_thread(pid, [&](std::int32_t thread) {
    return open_regular(process_path(root_, thread, "exe"), thread, "cannot open program",
                        "looking into other users' processes needs root, or CAP_SYS_PTRACE");
  });
}

std::optional<std::uint64_t> Procfs::read_word(std::int32_t pid, std::uint64_t address) const {
  return from_any_thread(pid, [&](std::int32_t thread) -> std::optional<std::uint64_t> {
    const UniqueFd memory = open_proc(process_path(root_, thread, "mem"), O_RDONLY);
    std::uint64_t word = 0;
    if (!memory || ::pread(memory.get(), &word, sizeof word, static_cast<off_t>(address)) != sizeof word)
      return std::nullopt;
    return word;
  });
}

void Procfs::visit_mappings(std::int32_t pid, const std::function<bool(Mapping)>& visit) const {
  const std::uint64_t end_ns = thread_cpu_ns() + max_mappings_cpu_ns;
  from_any_thread(pid, [&](std::int32_t thread) -> std::optional<bool> {
    const UniqueFd maps = open_proc(process_path(root_, thread, "maps"), O_RDONLY);
    bool any = false;
    std::string text;
    std::array<char, 1 << 14> chunk;
    while (maps && thread_cpu_ns() < end_ns) {
      const ssize_t got = ::read(maps.get(), chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      text.append(chunk.data(), static_cast<std::size_t>(got));
      // Without its newline a line is cut off, and may name another file than the whole line would.
      std::string_view rest{text};
      while (rest.contains('\n')) {
        auto mapping = parse_mapping(take_until(rest, '\n'));
        any = true;
        if (mapping && !visit(std::move(*mapping))) return true;
      }
      text.erase(0, text.size() - rest.size());
      if (text.size() > max_mapping_bytes) break;
    }
    return any ? std::optional(true) : std::nullopt;
  });
}

std::string Procfs::mapping_path(std::int32_t pid, const Mapping& mapping) const {
  return from_any_thread(
      pid, [&](std::int32_t thread) { return file_name(process_path(root_, thread, mapping_link(mapping).native())); });
}

Result<UniqueFd> Procfs::open_mapping(std::int32_t pid, const Mapping& mapping) const {
  return from_any_thread(pid, [&](std::int32_t thread) {
    auto file = open_regular(process_path(root_, thread, mapping_link(mapping).native()), thread, "cannot open mapping",
                             "map_files needs root with CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE");
    if (file || (file.error().code != EPERM && file.error().code != EACCES) || mapping.deleted || mapping.path.empty())
      return file;
    // By its name, as the process knows it. Another file may have the name by now.
    auto named = open_regular(process_path(root_, thread, "root" + mapping.path), thread, "cannot open mapping", "");
    return named && is_mapped_file(named->get(), mapping) ? std::move(named) : std::move(file);
  });
}

std::int64_t Procfs::clock_offset_ns(std::int32_t pid) const {
  return from_any_thread(pid, [&](std::int32_t thread) { return clock_offset(root_, thread); }).value_or(0);
}

std::vector<Mount> Procfs::mounts() const {
  std::vector<Mount> found;
  const auto text = read_small_file(root_ / "self/mountinfo", max_mountinfo_bytes);
  if (!text) return found;
  for (std::string_view rest{*text}; rest.contains('\n');) {
    if (auto mount = parse_mount(take_until(rest, '\n'))) found.push_back(std::move(*mount));
  }
  return found;
}

std::optional<OpenFile> Procfs::open_file(int fd) const {
  const auto text = read_small_file(root_ / "self/fdinfo" / std::to_string(fd), max_small_bytes);
  if (!text) return std::nullopt;
  std::optional<std::int64_t> mount;
  std::optional<std::uint64_t> inode;
  for (std::string_view rest{*text}; !rest.empty();) {
    std::string_view line = take_until(rest, '\n');
    const auto key = take_word(line);
    if (key == "mnt_id:") mount = parse_number<std::int64_t>(take_word(line));
    if (key == "ino:") inode = parse_number<std::uint64_t>(take_word(line));
  }
  if (!mount || !inode) return std::nullopt;
  return OpenFile{.mount = *mount, .inode = *inode};
}

Result<UniqueFd> Procfs::reopen(int fd) const {
  return open_regular(root_ / "self/fd" / std::to_string(fd), ::getpid(), "cannot open file",
                      "reading other users' files needs root, or CAP_DAC_READ_SEARCH");
}

}  // namespace rtev
