// SPDX-License-Identifier: MIT
#include "enable/requirements.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <string_view>
#include <utility>

#include "base/escape.hpp"
#include "base/file_io.hpp"
#include "base/run_parameters.hpp"
#include "enable/as_program.hpp"
#include "enable/process_status.hpp"
#include "inspect/mount_table.hpp"

namespace rtev::enable {
namespace {

/// The runtime's own (runtime/caml/runtime_events.h): names of user events, and what a domain has besides its ring.
constexpr std::uint64_t names_bytes = std::uint64_t{8192} * 128, domain_bytes = 80;
constexpr std::uint64_t default_ring_words = 1 << 16, default_domains = 128, max_ring_bits = 30, max_domains = 4096;

/// What the ring takes besides: the runtime allocates a little, and maps the file.
constexpr std::uint64_t spare_bytes = 4 << 20;
constexpr std::uint64_t spare_files = 1;
constexpr std::size_t max_path_bytes = 4096;

/// Of the file with all rings full.
std::uint64_t ring_file_bytes(const Target& target) {
  std::string parameters;
  for (const char* name : {"OCAMLRUNPARAM", "CAMLRUNPARAM"})
    if (parameters.empty()) parameters = started_with(target.pid, name).value_or("");
  std::uint64_t words = default_ring_words;
  if (const auto bits = run_parameter(parameters, 'e'); bits && *bits <= max_ring_bits) words = 1ull << *bits;
  if (const std::uint64_t place = target.place(target.runtime.start_sites.ring_words); place != 0) {
    // An int, which need not be aligned to a word.
    const auto aligned = target.memory.word(place & ~7ull);
    const auto known = aligned ? static_cast<std::uint32_t>(*aligned >> (place % 8 * 8)) : 0;
    if (known != 0 && known <= 1u << max_ring_bits) words = known;
  }
  const std::uint64_t domains = std::min(run_parameter(parameters, 'd').value_or(default_domains), max_domains);
  return names_bytes + domains * (words * sizeof(std::uint64_t) + domain_bytes) + 4096;
}

/// What the child process found out about the directory. Trivially copyable: it comes through a pipe.
struct Place {
  int open_error = 0;    ///< errno
  int unsafe = 0;        ///< its file system may not answer
  int access_error = 0;  ///< errno, of making a file there
  int is_taken = 0;      ///< a file of the ring's name is there
  int is_memory = 0;     ///< its file system is memory
  std::uint64_t free_bytes = 0, free_files = 0;
};

/// The runtime would write to a file of the ring's name. It may be the ring of a process of another pid namespace: two
/// programs that write one ring never end.
bool is_name_taken(const UniqueFd& directory, const ProcessStatus& status) {
  const std::string name = std::to_string(status.ns_pid) + ".events";
  struct stat file{};
  return ::fstatat(directory.get(), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/// Why no file can be made there whatever the rights: errno, or 0.
int obstacle_in(const UniqueFd& directory) {
  struct statx status{};
  if (::statx(directory.get(), "", AT_EMPTY_PATH, STATX_NLINK, &status) != 0) return errno;
  if (status.stx_nlink == 0) return ENOENT;  // it was removed
  // From a directory that can only grow the runtime could not remove its file.
  return (status.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0 ? EPERM : 0;
}

/// Runs in a child process, which this changes.
Place look_at_place(const Target& target, const std::string& path, const ProcessStatus& status) {
  Place place;
  const UniqueFd directory = open_directory(target.pid, path);
  if (!directory) {
    place.open_error = errno;
    return place;
  }
  MountTables mounts;
  place.unsafe = !mounts.check(directory.get(), target.pid, true);
  struct statfs system{};
  if (place.unsafe != 0 || ::fstatfs(directory.get(), &system) != 0) return place;
  place.is_memory = system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
  place.free_bytes =
      system.f_type == RAMFS_MAGIC ? UINT64_MAX : system.f_bavail * static_cast<std::uint64_t>(system.f_bsize);
  place.free_files = system.f_files == 0 ? UINT64_MAX : system.f_ffree;
  place.is_taken = is_name_taken(directory, status);
  place.access_error = (system.f_flags & ST_RDONLY) != 0 ? EROFS : obstacle_in(directory);
  if (place.access_error != 0) return place;
  if (!become(status, target.pid)) {
    place.access_error = errno;
    return place;
  }
  // Makes a file without a name, which shows what the kernel allows; where the file system has none, its rights count.
  const UniqueFd file(::openat(directory.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file) return place;
  place.access_error = errno;
  if (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)
    place.access_error = ::faccessat(directory.get(), ".", W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
  return place;
}

/// Nothing if it does not answer in time.
std::optional<Place> ask_about_place(const Target& target, const std::string& path, const ProcessStatus& status) {
  Place place;
  if (!run_in_child(std::as_writable_bytes(std::span(&place, 1)), [&] { place = look_at_place(target, path, status); }))
    return std::nullopt;
  return place;
}

/// Of AppArmor or SELinux; empty if there is none.
std::string security_profile(std::int32_t pid) {
  auto text = read_small_file("/proc/" + std::to_string(pid) + "/attr/current", max_path_bytes).value_or("");
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text == "unconfined" || text == "kernel" ? std::string() : text;
}

std::uint64_t open_files(std::int32_t pid) {
  std::error_code error;
  std::uint64_t count = 0;
  for ([[maybe_unused]] const auto& file :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error))
    ++count;
  return count;
}

/// Control groups of version 1 have the largest number of whole pages instead of no limit.
constexpr std::uint64_t no_limit = std::uint64_t{1} << 62;

std::string megabytes(std::uint64_t bytes) {
  constexpr std::uint64_t megabyte = 1 << 20;
  if (bytes >= no_limit) return "no limit";
  return bytes < megabyte ? fmt::format("{} kB", bytes >> 10) : fmt::format("{} MB", bytes / megabyte);
}

/// Collects what was looked at.
class List {
 public:
  void add(EnableResult result, std::string what, bool is_met, std::string found, std::string hint) {
    requirements_.push_back({.result = result,
                             .what = std::move(what),
                             .is_met = is_met,
                             .found = std::move(found),
                             .hint = is_met ? std::string() : std::move(hint)});
  }
  std::vector<Requirement> take() { return std::move(requirements_); }

 private:
  std::vector<Requirement> requirements_;
};

void add_place(List& list, const std::optional<Place>& place, const std::string& path, std::uint64_t bytes) {
  const std::string name = path.empty() ? "its working directory" : path;
  const std::string hint = "start it with OCAML_RUNTIME_EVENTS_DIR set to a directory that it may write to";
  if (!place) return list.add(EnableResult::no_answer, "directory of the ring", false, name + " did not answer", hint);
  if (place->unsafe != 0)
    return list.add(EnableResult::directory, "directory of the ring", false,
                    name + ": its file system may not answer (FUSE, NFS)", hint);
  const int error = place->open_error != 0 ? place->open_error : place->access_error;
  list.add(EnableResult::directory, "directory of the ring", error == 0,
           error == 0 ? name : name + ": " + std::generic_category().message(error), hint);
  if (error != 0) return;
  list.add(EnableResult::directory, free_name, place->is_taken == 0,
           place->is_taken == 0 ? "free" : "there is a file of that name",
           "if no process of another container writes to it, remove it");
  const bool has_space = place->free_bytes >= bytes && place->free_files > 0;
  list.add(EnableResult::space, "space for the ring", has_space,
           fmt::format("{} free, {} for {} at most", megabytes(place->free_bytes), megabytes(bytes), "the ring"),
           "free some space there, or start it with another OCAML_RUNTIME_EVENTS_DIR");
}

}  // namespace

std::vector<Requirement> check_requirements(const Target& target, bool allow_confined) {
  List list;
  const auto status = read_status(target.pid);
  const auto limits = read_limits(target.pid);
  if (!status || !limits) {
    list.add(EnableResult::gone, "process", false, "it ended", {});
    return list.take();
  }
  const bool is_free = status->tracer_pid == 0;
  list.add(EnableResult::debugged, "debugger", is_free, is_free ? "none" : "one is attached", "detach the debugger");

  const std::string confined_hint = "if its rules allow it to make files there, use --allow-confined";
  list.add(EnableResult::seccomp, "filter of system calls", status->seccomp == 0 || allow_confined,
           status->seccomp == 0 ? "none" : "it has one (seccomp)", confined_hint);
  const std::string profile = security_profile(target.pid);
  list.add(EnableResult::profile, "security profile", profile.empty() || allow_confined,
           profile.empty() ? "none" : profile, confined_hint);

  std::string path;
  bool knows_path = true;
  const std::uint64_t bytes = ring_file_bytes(target);
  if (const std::uint64_t variable = target.place(target.runtime.start_sites.directory); variable != 0) {
    const auto pointer = target.memory.word(variable);
    const auto text = pointer && *pointer != 0 ? target.memory.text(*pointer, max_path_bytes) : std::string();
    knows_path = pointer.has_value() && text.has_value();
    path = text.value_or("");
  } else {
    path = started_with(target.pid, "OCAML_RUNTIME_EVENTS_DIR").value_or("");
  }
  if (!knows_path) {
    list.add(EnableResult::unexpected_value, "directory of the ring", false, "it cannot be read", {});
    return list.take();
  }
  const auto place = ask_about_place(target, path, *status);
  add_place(list, place, path, bytes);

  list.add(EnableResult::limit, "largest file (RLIMIT_FSIZE)", limits->file_bytes >= bytes,
           megabytes(limits->file_bytes), "raise its limit: prlimit --fsize");
  const bool has_addresses =
      limits->address_space - std::min(limits->address_space, status->memory_bytes) >= bytes + spare_bytes;
  list.add(EnableResult::limit, "address space (RLIMIT_AS)", has_addresses, megabytes(limits->address_space),
           "raise its limit: prlimit --as");
  const std::uint64_t files = open_files(target.pid);
  list.add(EnableResult::limit, "open files (RLIMIT_NOFILE)", files + spare_files < limits->open_files,
           fmt::format("{} of {}", files, limits->open_files), "raise its limit: prlimit --nofile");
  // What lies on a disk can leave memory again.
  const std::uint64_t memory = memory_left(target.pid);
  list.add(EnableResult::memory, "memory of its control group",
           memory >= (place && place->is_memory != 0 ? bytes + spare_bytes : spare_bytes),
           memory >= no_limit ? "no limit" : megabytes(memory) + " left", "raise the limit of the group (memory.max)");
  return list.take();
}

}  // namespace rtev::enable
