// SPDX-License-Identifier: MIT
#include "inspect/mount_table.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/file_io.hpp"
#include "base/parse.hpp"
#include "base/proc_files.hpp"
#include "inspect/proc_lines.hpp"

namespace rtev {
namespace {

/// Namespaces that are remembered: containers that are looked at in turn.
constexpr std::size_t max_tables = 32;

/// Roots from which a table is read until it changes.
constexpr std::size_t max_roots = 8;

/// Without ramfs and hugetlbfs: to read holes there takes memory that is not given back.
constexpr std::array<std::string_view, 26> local_types{
    "rootfs",  "tmpfs",    "devtmpfs", "ext2",     "ext3",  "ext4",  "xfs",    "btrfs", "f2fs",
    "zfs",     "bcachefs", "jfs",      "nilfs2",   "ubifs", "vfat",  "msdos",  "exfat", "ntfs3",
    "hfsplus", "iso9660",  "udf",      "squashfs", "erofs", "romfs", "cramfs", "minix"};

/// Lies on directories of other file systems: as safe as the one who mounted it.
constexpr std::string_view overlay_type = "overlay";

/// Of a mount that no table has: that of memfd_create(2), one that a process is not chrooted to, or one that was
/// unmounted while files of it are in use.
bool is_local_magic(std::uint64_t magic) {
  constexpr std::uint64_t zfs = 0x2fc12fc1, bcachefs = 0xca451a4e;
  constexpr std::array<std::uint64_t, 7> local{
      TMPFS_MAGIC, EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, zfs, bcachefs};
  return std::ranges::find(local, magic) != local.end();
}

/// True if the mount namespace belongs to this process's user namespace.
bool is_own_users(const std::filesystem::path& mounts, const std::filesystem::path& own_user) {
  const UniqueFd opened = open_proc(mounts, O_RDONLY);
  const UniqueFd user(opened ? ::ioctl(opened.get(), NS_GET_USERNS) : -1);
  struct stat owner{}, own{};
  const auto [directory, name] = proc_place(own_user.native());
  return user && ::fstat(user.get(), &owner) == 0 && ::fstatat(directory, name, &own, 0) == 0 &&
         owner.st_ino == own.st_ino;
}

/// The id of the mount that a descriptor was opened through.
std::optional<std::int64_t> mount_of(int fd) {
  const auto text = read_small_file("/proc/self/fdinfo/" + std::to_string(fd), 4096);
  if (!text) return std::nullopt;
  for (std::string_view rest{*text}; !rest.empty();) {
    std::string_view line = take_until(rest, '\n');
    if (take_word(line) == "mnt_id:") return parse_number<std::int64_t>(take_word(line));
  }
  return std::nullopt;
}

/// The type of the file system of the mount that `fd` was opened through, as the kernel says for a mount namespace.
/// Nothing before Linux 6.11, or if the mount is in another namespace. `fd` may be opened with O_PATH.
std::optional<std::string> type_in(int fd, const std::filesystem::path& mounts) {
  // As in <linux/mount.h>, <linux/nsfs.h> and <linux/stat.h> since Linux 6.11, which Debian 12 does not have.
  struct Request {
    std::uint32_t size = sizeof(Request), spare = 0;
    std::uint64_t mount = 0, wanted = 0x20 /* STATMOUNT_FS_TYPE */, name_space = 0;
  } request;
  struct Reply {
    std::uint32_t size, options;
    std::uint64_t found;
    std::array<std::uint32_t, 5> of_superblock;
    std::uint32_t type;  // its offset in `text`
    std::array<char, 512 - 40> others;
    std::array<char, 256> text;
  } reply{};
  static_assert(sizeof(Request) == 32 && offsetof(Reply, type) == 36 && offsetof(Reply, text) == 512);
  constexpr unsigned mount_id_unique = 0x4000, get_mount_namespace_id = _IOR(NSIO, 5, std::uint64_t);
  constexpr long statmount_call = 457;  // on all CPUs
  struct statx status{};
  const UniqueFd opened = open_proc(mounts, O_RDONLY);
  if (!opened || ::ioctl(opened.get(), get_mount_namespace_id, &request.name_space) != 0) return std::nullopt;
  if (::statx(fd, "", AT_EMPTY_PATH, mount_id_unique, &status) != 0 || !(status.stx_mask & mount_id_unique))
    return std::nullopt;
  // struct statx of glibc 2.36 has no name for it.
  std::memcpy(&request.mount, reinterpret_cast<const char*>(&status) + 0x90, sizeof(request.mount));
  if (::syscall(statmount_call, &request, &reply, sizeof(reply), 0) != 0 || !(reply.found & request.wanted) ||
      reply.type >= reply.text.size())
    return std::nullopt;
  return std::string(&reply.text[reply.type], ::strnlen(&reply.text[reply.type], reply.text.size() - reply.type));
}

std::unexpected<Error> unsafe(const std::string& type) {
  return std::unexpected(Error{.what = "cannot read file safely",
                               .subject = {},
                               .why = "its file system (" + type + ") may never answer",
                               .hint = "put the file on a local file system",
                               .code = unsafe_file_system});
}

}  // namespace

bool is_local_file_system(std::string_view type) {
  return std::ranges::find(local_types, type) != local_types.end();
}

Result<void> MountTables::check(int fd, std::int32_t pid, bool careful) {
  const auto mount = mount_of(fd);
  if (!mount) return errno_error(errno, "cannot find the mount of a file");
  for (const std::string& process : {std::string("self"), std::to_string(pid)}) {
    Table* const table = table_of(process);
    if (table == nullptr) continue;
    const auto found = table->types.find(*mount);
    if (found == table->types.end()) continue;
    const std::string& type = found->second;
    if (is_local_file_system(type) || (type == overlay_type && table->by_root)) return {};
    return unsafe(type);
  }
  // A user can make the table too long.
  for (const std::string& process : {std::string("self"), std::to_string(pid)}) {
    const auto mounts = root_ / process / "ns/mnt";
    const auto type = type_in(fd, mounts);
    if (!type) continue;
    // After the mount: see read().
    if (is_local_file_system(*type) || (*type == overlay_type && is_own_users(mounts, root_ / "self/ns/user")))
      return {};
    return unsafe(*type);
  }
  if (careful) return unsafe("of an unknown mount");
  struct statfs status{};
  if (::fstatfs(fd, &status) != 0) return errno_error(errno, "cannot find the file system of a file");
  return is_local_magic(static_cast<std::uint32_t>(status.f_type)) ? Result<void>() : unsafe("of an unknown mount");
}

/// The table of a process's mount namespace, without mounts that are gone; null if the process is.
MountTables::Table* MountTables::table_of(const std::string& process) {
  const std::string name = link_target(root_ / process / "ns/mnt");
  if (name.empty()) return nullptr;
  if (const auto found = std::ranges::find(tables_, name, &Table::name); found != tables_.end()) {
    tables_.splice(tables_.begin(), tables_, found);
    pollfd changed{.fd = found->changes.get(), .events = POLLPRI, .revents = 0};
    if (::poll(&changed, 1, 0) > 0) {
      found->types.clear();
      found->roots.clear();
    }
  } else {
    UniqueFd changes = open_proc(root_ / process / "mountinfo", O_RDONLY);
    if (!changes) return nullptr;
    if (tables_.size() >= max_tables) tables_.pop_back();
    tables_.push_front({.name = name, .changes = std::move(changes), .cpu_share = limits_.cpu_share});
  }
  Table& table = tables_.front();
  const std::string root = link_target(root_ / process / "root");
  if (table.roots.contains(root) || table.roots.size() >= max_roots) return &table;
  if (!table.cpu_share.has_left(monotonic_ns())) return &table;
  const std::uint64_t before_ns = thread_cpu_ns();
  if (read(table, process)) table.roots.insert(root);
  table.cpu_share.use(thread_cpu_ns() - before_ns, monotonic_ns());
  return &table;
}

/// Adds the mounts that a process sees. False if it has left the namespace.
bool MountTables::read(Table& table, const std::string& process) const {
  auto types = read_types(process);
  if (!types) return false;
  // After the mounts: a process can leave its namespaces, but not return to those that root owns.
  const bool by_root = is_own_users(root_ / process / "ns/mnt", root_ / "self/ns/user");
  if (link_target(root_ / process / "ns/mnt") != table.name) return false;
  table.by_root = by_root;
  table.types.merge(*types);
  return true;
}

/// The types of the mounts that a process sees, by mount id, up to the limits. Nothing if they cannot be read.
std::optional<std::map<std::int64_t, std::string>> MountTables::read_types(const std::string& process) const {
  std::map<std::int64_t, std::string> types;
  const std::uint64_t end_ns = thread_cpu_ns() + limits_.read_cpu_ns;
  const UniqueFd mounts = open_proc(root_ / process / "mountinfo", O_RDONLY);
  if (!mounts) return std::nullopt;
  std::string text;
  std::array<char, 1 << 14> chunk;
  for (std::size_t bytes = 0; bytes < limits_.bytes && thread_cpu_ns() < end_ns;) {
    const ssize_t got = ::read(mounts.get(), chunk.data(), std::min(chunk.size(), limits_.bytes - bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    bytes += static_cast<std::size_t>(got);
    text.append(chunk.data(), static_cast<std::size_t>(got));
    std::string_view rest{text};
    while (rest.contains('\n')) {
      if (auto mount = parse_mount(take_until(rest, '\n'))) types.insert_or_assign(mount->id, std::move(mount->type));
    }
    text.erase(0, text.size() - rest.size());
  }
  return types;
}

}  // namespace rtev
