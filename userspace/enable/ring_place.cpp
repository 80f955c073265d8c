// SPDX-License-Identifier: MIT
#include "enable/ring_place.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <expected>
#include <filesystem>
#include <system_error>

#include "base/proc_files.hpp"
#include "base/subordinate_users.hpp"
#include "enable/as_program.hpp"
#include "enable/process_status.hpp"
#include "enable/safe_path.hpp"
#include "inspect/mount_table.hpp"

namespace rtev::enable {
namespace {

using helper::Message;
using helper::Reader;
using helper::Writer;

template <typename Archive>
void pass_place(Archive&& archive, RingPlace& place) {
  archive(place.open_error, place.is_unsafe, place.insecure, place.access_error, place.is_taken, place.is_memory,
          place.free_bytes, place.free_files);
}

/// A process's own name for its ring's file; empty if the process is gone.
std::string ring_name(const HeldProcess& process) {
  const auto status = process.read("status").and_then(parse_status);
  return status ? std::to_string(status->ns_pid) + ".events" : std::string();
}

/// Why no file can be made there whatever the rights: errno, or 0.
int obstacle_in(const UniqueFd& directory) {
  struct statx status{};
  if (::statx(directory.get(), "", AT_EMPTY_PATH, STATX_NLINK, &status) != 0) return errno;
  if (status.stx_nlink == 0) return ENOENT;  // it was removed
  // From a directory that can only grow the runtime could not remove its file.
  return (status.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0 ? EPERM : 0;
}

/// Where the paths of a program begin. Opened with this process's rights.
UniqueFd root_of(const HeldProcess& process) {
  return process.open("root", O_PATH | O_DIRECTORY);
}

/// Whether its mode says less than who may read it.
bool has_access_list(const UniqueFd& directory) {
  return ::fchdir(directory.get()) == 0 && ::getxattr(".", "system.posix_acl_access", nullptr, 0) > 0;
}

/// For a child process, which this changes: it has the rights of the program afterwards. The directory that the program
/// itself finds, if it is safe and its file system answers.
UniqueFd open_as_program(const HeldProcess& process, const RingPath& path, RingPlace& place) {
  const UniqueFd root = root_of(process);
  if (!root) {
    place.open_error = ESRCH;
    return {};
  }
  MountTables mounts;
  const Credentials& credentials = process.credentials();
  auto directory = SafePath(credentials, process.pid(), mounts).open(root, path.path);
  if (!directory) {
    place.is_unsafe = directory.error().code == unsafe_file_system;
    place.insecure = directory.error().insecure;
    if (!place.is_unsafe && place.insecure.empty()) place.open_error = directory.error().code;
    return {};
  }
  struct statfs system{};
  UniqueFd held(::fcntl(directory->fd(), F_DUPFD_CLOEXEC, 0));
  struct stat status{};
  if (!held || ::fstatfs(held.get(), &system) != 0 || ::fstat(held.get(), &status) != 0) {
    place.open_error = errno;
    return {};
  }
  // Who may write there can put a link under the name of a child's ring, which the child follows.
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    place.insecure = "its group or others may write to it";
    return {};
  }
  // The group of the program's user has, as a rule, nobody else. Who may only look up names can lock it by rename(2).
  const bool is_group_own = status.st_gid == credentials.group && !has_access_list(held);
  if ((status.st_mode & (is_group_own ? S_IRWXO : S_IRWXG | S_IRWXO)) != 0 && !path.may_be_readable) {
    place.insecure = "others may read or search it, so they could lock it (--allow-readable)";
    return {};
  }
  place.is_memory = system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
  // Blocks there would be memory of this process. Without them, who fills it ends the program.
  if (place.is_memory && !directory->is_in_file_system_of(credentials.user)) {
    place.insecure = "its file system is in memory, and others may fill it";
    return {};
  }
  place.free_bytes =
      system.f_type == RAMFS_MAGIC ? UINT64_MAX : system.f_bavail * static_cast<std::uint64_t>(system.f_bsize);
  place.free_files = system.f_files == 0 ? UINT64_MAX : system.f_ffree;
  place.access_error = (system.f_flags & ST_RDONLY) != 0 ? EROFS : obstacle_in(held);
  if (place.access_error != 0) return {};
  if (!become(credentials)) {
    place.access_error = errno;
    return {};
  }
  // The program has to come there, too.
  place.access_error = directory->obstacle();
  return place.access_error == 0 ? std::move(held) : UniqueFd();
}

/// False if there is no space (errno).
bool reserve(const UniqueFd& file, const RingParts& parts) {
  const auto allocate = [&file](std::uint64_t begin, std::uint64_t bytes) {
    // The size stays 0. The runtime makes it what it needs, and the blocks stay.
    return bytes == 0 ||
           ::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin), static_cast<off_t>(bytes)) == 0 ||
           errno == EOPNOTSUPP;
  };
  return allocate(0, parts.first_bytes) && allocate(parts.names_begin, parts.names_bytes);
}

/// Makes a file without a name, which shows what the kernel allows; where the file system has none, its rights count.
int try_to_make_file(const UniqueFd& directory) {
  const UniqueFd file(::openat(directory.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file) return 0;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT) return errno;
  return ::faccessat(directory.get(), ".", W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

bool is_name_taken(const UniqueFd& directory, const std::string& name) {
  struct stat file{};
  return ::fstatat(directory.get(), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

std::optional<RingIdentity> identity_of(const Procfs& procfs, const UniqueFd& file) {
  struct stat status{};
  const auto opened = file ? procfs.open_file(file.get()) : std::nullopt;
  if (!opened || ::fstat(file.get(), &status) != 0) return std::nullopt;
  return RingIdentity{.inode = opened->inode, .device = status.st_dev};
}

/// Whether the name leads to this file.
bool leads_to(const Procfs& procfs, const UniqueFd& directory, const std::string& name, const RingIdentity& ring) {
  const auto found =
      identity_of(procfs, UniqueFd(::openat(directory.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)));
  return found && found->inode == ring.inode && (ring.device == 0 || found->device == ring.device);
}

bool belongs_to_program(const Credentials& credentials, const UniqueFd& directory, const std::string& name) {
  struct stat file{};
  return ::fstatat(directory.get(), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(file.st_mode) &&
         file.st_uid == credentials.user;
}

bool is_own_mount_namespace(const HeldProcess& process) {
  const UniqueFd own = open_proc("/proc/self/ns/mnt", O_RDONLY), other = process.open("ns/mnt", O_RDONLY);
  struct stat own_status{}, status{};
  return other && own && ::fstat(other.get(), &status) == 0 && ::fstat(own.get(), &own_status) == 0 &&
         status.st_ino == own_status.st_ino;
}

/// Removes it, in a child process that has the rights of the program.
bool remove_as_program(const Procfs& procfs, const Credentials& credentials, const UniqueFd& directory,
                       const std::string& name, const RingIdentity& ring) {
  return leads_to(procfs, directory, name, ring) && belongs_to_program(credentials, directory, name) &&
         become(credentials) && ::unlinkat(directory.get(), name.c_str(), 0) == 0;
}

Message answer(bool is_done) {
  Message message;
  Writer{message}(is_done);
  return message;
}

bool is_done(std::expected<Message, NoAnswer> message) {
  bool done = false;
  if (!message) return false;
  Reader reader(*message);
  reader(done);
  return reader.is_complete() && done;
}

}  // namespace

Refused no_answer_of(const std::string& name, NoAnswer reason) {
  switch (reason) {
    case NoAnswer::late:
      break;
    case NoAnswer::no_place:
      return {.result = EnableResult::denied,
              .why = "too many processes still wait for directories of rings that do not answer",
              .hint = "try again when they do"};
    case NoAnswer::failed:
      return {.result = EnableResult::denied,
              .why = "no process could be made that looks at " + name,
              .hint = "try again: the host, or the service, may have too many processes"};
  }
  return {.result = EnableResult::no_answer, .why = name + " did not answer", .hint = directory_hint};
}

std::expected<RingPlace, NoAnswer> look_at_ring_place(const HeldProcess& process, const RingPath& path) {
  const std::string name = ring_name(process);
  auto message = run_in_child(charged_user(process.credentials().user), {process.directory().get()}, [&] {
    RingPlace place;
    if (const UniqueFd directory = open_as_program(process, path, place)) {
      place.is_taken = is_name_taken(directory, name);
      place.access_error = try_to_make_file(directory);
    }
    Message found;
    pass_place(Writer{found}, place);
    return found;
  });
  RingPlace place;
  if (!message) return std::unexpected(message.error());
  Reader reader(*message);
  pass_place(reader, place);
  if (!reader.is_complete()) return std::unexpected(NoAnswer::failed);
  return place;
}

Checked<ReservedRing> ReservedRing::make(const Procfs& procfs, const HeldProcess& process, const RingPath& path,
                                         const RingParts& parts) {
  const std::string name = ring_name(process);
  if (name.empty()) return ended();
  auto message = run_in_child(charged_user(process.credentials().user), {process.directory().get()}, [&] {
    RingPlace place;
    UniqueFd directory = open_as_program(process, path, place), file;
    if (directory) {
      ::umask(0);
      file.reset(::openat(directory.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
      if (!file || (!place.is_memory && !reserve(file, parts))) place.access_error = errno;
    }
    Message made;
    Writer writer(made);
    pass_place(writer, place);
    writer(directory, file);
    return made;
  });
  RingPlace place;
  UniqueFd directory, file;
  const std::string directory_name = "the directory of its ring";
  if (!message) return std::unexpected(no_answer_of(directory_name, message.error()));
  Reader reader(*message);
  pass_place(reader, place);
  reader(directory, file);
  if (!reader.is_complete()) return std::unexpected(no_answer_of(directory_name, NoAnswer::failed));
  if (place.open_error == ESRCH) return ended();
  const auto identity = identity_of(procfs, file);
  std::optional<ReservedRing> ring;
  if (identity)
    ring.emplace(ReservedRing(process.credentials(), std::move(directory), path.path + "/" + name, *identity));
  if (!ring || place.access_error != 0) {
    const int code = place.open_error != 0 ? place.open_error : place.access_error;
    const std::string why = !place.insecure.empty() ? place.insecure : std::generic_category().message(code);
    return refuse(EnableResult::directory, "its ring cannot be made: " + why, directory_hint);
  }
  return std::move(*ring);
}

ReservedRing::~ReservedRing() {
  if (!directory_) return;
  run_in_child(charged_user(credentials_.user), {directory_.get()},
               [this] { return answer(remove_as_program(Procfs(), credentials_, directory_, name(), identity_)); });
}

bool ReservedRing::is_in_place(const Procfs& procfs) const {
  return directory_ && leads_to(procfs, directory_, name(), identity_);
}

bool remove_ring_file(const Procfs& procfs, const HeldProcess& process, const std::string& path,
                      const RingIdentity& ring) {
  const std::filesystem::path place(path);
  const std::string folder = place.parent_path(), name = place.filename();
  return is_done(run_in_child(charged_user(process.credentials().user), {process.directory().get()}, [&] {
    const UniqueFd root = root_of(process);
    // The kernel names it as this process sees it if both are in one mount namespace: also below a root of the program.
    const UniqueFd own_root(is_own_mount_namespace(process) ? ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1);
    MountTables mounts;
    const SafePath safe(process.credentials(), process.pid(), mounts);
    for (const UniqueFd* begin : {&root, &own_root}) {
      if (!*begin) continue;
      const auto directory = safe.open(*begin, folder);
      const UniqueFd held(directory ? ::fcntl(directory->fd(), F_DUPFD_CLOEXEC, 0) : -1);
      if (held && leads_to(procfs, held, name, ring))
        return answer(remove_as_program(procfs, process.credentials(), held, name, ring));
    }
    return answer(false);
  }));
}

}  // namespace rtev::enable
