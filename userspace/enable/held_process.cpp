// SPDX-License-Identifier: MIT
#include "enable/held_process.hpp"

#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/file_io.hpp"
#include "base/parse.hpp"
#include "base/proc_files.hpp"
#include "enable/process_status.hpp"
#include "inspect/proc_lines.hpp"

namespace rtev::enable {
namespace {

constexpr std::size_t max_environment_bytes = 1 << 20;

constexpr const char* secure = "its program has more rights than its caller (set-user-ID, or file capabilities)";

/// What /proc/PID/auxv says of a key; nothing if it does not have it.
std::optional<std::uint64_t> auxiliary(std::string_view vector, std::uint64_t key) {
  Elf64_auxv_t entry{};
  for (; vector.size() >= sizeof entry; vector.remove_prefix(sizeof entry)) {
    std::memcpy(&entry, vector.data(), sizeof entry);
    if (entry.a_type == key) return entry.a_un.a_val;
  }
  return std::nullopt;
}

/// What user 0 of a user namespace is here, by the text of a uid_map.
std::optional<uid_t> root_in(std::string_view map) {
  while (!map.empty()) {
    std::string_view line = take_until(map, '\n');
    const auto number = [&line] {
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      return parse_number<uid_t>(take_until(line, ' '));
    };
    const auto inside = number(), outside = number();
    if (inside == 0u && outside) return outside;
  }
  return std::nullopt;
}

/// Whether the kernel has given a program rights that its caller had not, or that is not known.
bool is_secure(std::string_view vector) {
  return auxiliary(vector, AT_SECURE).value_or(1) != 0;
}

}  // namespace

std::unexpected<Refused> privileged(std::string why) {
  return refuse(EnableResult::privileged, std::move(why), "start it with OCAML_RUNTIME_EVENTS_START=1");
}

Checked<HeldProcess> HeldProcess::hold(std::int32_t pid, std::uint64_t start_ticks) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  UniqueFd directory = open_proc("/proc/" + std::to_string(pid), O_PATH | O_DIRECTORY);
  if (!pidfd || !directory) return ended();
  HeldProcess held(pid, std::move(pidfd), std::move(directory));
  held.may_write_ = held.look(start_ticks);
  if (!held.may_write_ && held.may_write_.error().result == EnableResult::gone)
    return std::unexpected(std::move(held.may_write_.error()));
  return held;
}

std::optional<ProcessMemory> HeldProcess::memory_of_child(std::int32_t pid, std::uint64_t start_ticks) const {
  HeldProcess child(pid, {}, open_proc("/proc/" + std::to_string(pid), O_PATH | O_DIRECTORY));
  const auto is_copy = [&] {
    const auto text = child.read("stat");
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    return stat && !stat->ending && stat->start_ticks == start_ticks && stat->parent == pid_ &&
           child.identity_of("exe") == program_ && child.read("auxv") == vector_;
  };
  if (!child.directory_ || vector_.empty() || !is_copy()) return std::nullopt;
  // If its user may not read it, the file is root's.
  constexpr uid_t root = 0;
  auto memory = ProcessMemory::open(pid, child.directory_, root);
  return memory && is_copy() ? std::optional(std::move(*memory)) : std::nullopt;
}

Checked<void> HeldProcess::look(std::uint64_t start_ticks) {
  const auto text = read("stat");
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  if (!stat || stat->ending || (start_ticks != 0 && stat->start_ticks != start_ticks)) return ended();
  start_ticks_ = stat->start_ticks;
  vector_ = read("auxv").value_or("");
  // Here, since it says more than what the kernel makes of it, and below once more.
  if (is_secure(vector_)) return privileged(secure);
  auto credentials = read_credentials();
  if (!credentials) return std::unexpected(std::move(credentials.error()));
  credentials_ = std::move(*credentials);
  auto memory = ProcessMemory::open(pid_, directory_, credentials_.user);
  if (!memory) {
    if (has_ended()) return ended();
    return refuse(EnableResult::denied, memory.error().message(),
                  "run as root of the host, not of a container; a protected process cannot be changed");
  }
  memory_ = std::move(*memory);
  // From here on what is read is of the program whose memory this is, or of a later one: then the memory is gone.
  const auto program = identity_of("exe");
  if (!program) return ended();
  program_ = *program;
  root_ = identity_of("root");
  mounts_ = identity_of("ns/mnt");
  if (is_secure(read("auxv").value_or(""))) return privileged(secure);
  // The pidfd was opened first: if the process lives, the directory is of the same one.
  return check_unchanged();
}

bool HeldProcess::has_ended() const {
  pollfd ended{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ended, 1, 0) != 0;
}

Checked<void> HeldProcess::check_unchanged() const {
  if (has_ended()) return ended();
  const auto credentials = read_credentials();
  if (!credentials) return std::unexpected(credentials.error());
  if (*credentials != credentials_)
    return refuse(EnableResult::privileged, "its user, groups or capabilities have changed meanwhile");
  // The memory that was held may be that of its parent, which lives on (vfork(2)). The kernel chooses other addresses
  // for each program that is executed, also of the same file.
  if (identity_of("exe") != program_ || read("auxv") != vector_ || !memory_.is_alive())
    return refuse(EnableResult::gone, "it runs another program by now");
  return {};
}

Checked<Credentials> HeldProcess::read_credentials() const {
  const auto text = read("status");
  const auto status = text.and_then(parse_status);
  const auto map = read("uid_map");
  const UniqueFd name_space = open("ns/user", O_RDONLY);
  struct stat user_namespace{}, memory{};
  if (!status || !map || !name_space || ::fstat(name_space.get(), &user_namespace) != 0 ||
      ::fstatat(directory_.get(), "mem", &memory, 0) != 0)
    return ended();
  const auto differ = [](const std::array<std::uint32_t, 4>& ids) {
    return std::ranges::any_of(ids, [&](std::uint32_t id) { return id != ids[0]; });
  };
  if (differ(status->user_ids)) return privileged("it has the rights of several users (set-user-ID)");
  if (differ(status->group_ids)) return privileged("it has the rights of several groups (set-group-ID)");
  const auto namespace_root = root_in(*map);
  // Other processes of its user must not lead it to what they may not open themselves.
  if (status->user_ids[0] != namespace_root && (status->capabilities | status->permitted_capabilities) != 0)
    return privileged("it has capabilities that its user has not");
  // The kernel gives the files about such a process to root.
  if (memory.st_uid != status->user_ids[0]) return privileged(not_dumpable);
  return Credentials{.user = status->user_ids[0],
                     .group = status->group_ids[0],
                     .groups = status->groups,
                     .capabilities = status->capabilities,
                     .user_namespace = user_namespace.st_ino,
                     .namespace_root = namespace_root};
}

bool HeldProcess::has_its_root() const {
  return identity_of("root") == root_;
}

bool HeldProcess::has_its_mounts() const {
  return identity_of("ns/mnt") == mounts_;
}

std::optional<FileIdentity> HeldProcess::identity_of(const char* link) const {
  struct statx status{};
  // Asks no file system.
  if (::statx(directory_.get(), link, AT_STATX_DONT_SYNC, STATX_INO, &status) != 0) return std::nullopt;
  return FileIdentity{::makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino};
}

UniqueFd HeldProcess::open(const char* name, int flags) const {
  return UniqueFd(::openat(directory_.get(), name, flags | O_CLOEXEC));
}

std::optional<std::string> HeldProcess::read(const char* name, std::size_t max_bytes) const {
  return read_small_file(open(name, O_RDONLY | O_NOCTTY), max_bytes);
}

std::optional<std::string> HeldProcess::started_with(std::string_view name) const {
  const auto environment = read("environ", max_environment_bytes);
  return environment ? variable_in(*environment, name) : std::nullopt;
}

}  // namespace rtev::enable
